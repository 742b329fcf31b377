#include "even_lanes.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "at_once.h"
#include "coarse_level.h"
#include "ordering_parts.h"

namespace flowos::solve {

template <class T>
class EvenLanes<T>::Writer {
 public:
  Writer(Part& part, std::int32_t zeros, bool backward)
      : part_(part), zeros_(zeros), backward_(backward) {}

  void write(const GroupEntries<T>& from, int steps) {
    const auto first = static_cast<std::int32_t>(part_.codes.size());
    for (int step = 0; step < steps; ++step) {
      part_.starts.push_back(static_cast<std::int32_t>(part_.codes.size()) - first);
      // The step that was computed just before comes last, as it is there last.
      const std::int32_t first_entry = from.starts[step], past = from.starts[step + 1];
      for (std::int32_t i = first_entry; i < past; ++i) {
        const std::int32_t e = backward_ ? first_entry + past - 1 - i : i;
        write_entry(from.codes[e], from.indices, from.values + std::ptrdiff_t{e} * kLanes<T>);
      }
    }
    part_.starts.push_back(static_cast<std::int32_t>(part_.codes.size()) - first);
  }

 private:
  void write_entry(std::int32_t code, const std::int32_t* indices, const T* values) {
    if (code >= 0 && values[0] != 0 &&
        std::all_of(values, values + kLanes<T>, [&](T value) { return value == values[0]; })) {
      part_.codes.push_back(code);
      part_.values.push_back(values[0]);
    } else {
      write_gathered(code, indices, values);
    }
  }

  // Once for each value.
  void write_gathered(std::int32_t code, const std::int32_t* indices, const T* values) {
    std::uint32_t done = 0;
    for (int lane = 0; lane < kLanes<T>; ++lane) {
      if (values[lane] == 0 || (done >> static_cast<unsigned>(lane) & 1U) != 0) continue;
      part_.codes.push_back(~static_cast<std::int32_t>(part_.indices.size()));
      part_.values.push_back(values[lane]);
      for (int other = 0; other < kLanes<T>; ++other) {
        const bool same = values[other] == values[lane];
        if (same) done |= 1U << static_cast<unsigned>(other);
        const std::int32_t place = code >= 0 ? code + other : indices[~code + other];
        part_.indices.push_back(same ? place : zeros_ + other);
      }
    }
  }

  Part& part_;
  std::int32_t zeros_;
  bool backward_;
};

template <class T>
EvenLanes<T>::EvenLanes(const GroupEntries<T>* of_groups, std::int64_t groups, int steps,
                        bool backward, int threads)
    : groups_(at(groups)) {
  const int count = static_cast<int>(std::clamp<std::int64_t>(groups, 1, threads));
  parts_.resize(at(count));
  const auto zeros = static_cast<std::int32_t>(groups * steps * kLanes<T>);
  at_once(count, [&](int i) {
    const std::int64_t first = groups * i / count, past = groups * (i + 1) / count;
    Part& part = parts_[at(i)];
    Writer writer(part, zeros, backward);
    part.codes.assign(kCodesAround, 0);
    part.values.assign(kCodesAround, T(0));
    std::vector<std::size_t> codes;
    for (std::int64_t group = first; group < past; ++group) {
      codes.push_back(part.codes.size());
      writer.write(of_groups[group], steps);
    }
    part.codes.insert(part.codes.end(), kCodesAround, 0);
    for (std::int64_t group = first; group < past; ++group) {
      const std::size_t code = codes[at(group - first)];
      groups_[at(group)] = {.starts = part.starts.data() + at(group - first) * at(steps + 1),
                            .codes = part.codes.data() + code,
                            .indices = part.indices.data(),
                            .values = part.values.data() + code};
    }
  });
}

template <class T>
std::int64_t EvenLanes<T>::bytes() const {
  std::size_t sum = 0;
  for (const Part& part : parts_) {
    sum += 4 * (part.starts.size() + part.codes.size() + part.indices.size()) +
           sizeof(T) * part.values.size();
  }
  return static_cast<std::int64_t>(sum);
}

template <class T>
std::int64_t EvenLanes<T>::entries() const {
  std::size_t sum = 0;
  for (const Part& part : parts_) sum += part.codes.size() * kLanes<T>;
  return static_cast<std::int64_t>(sum);
}

template class EvenLanes<float>;
template class EvenLanes<double>;

}  // namespace flowos::solve
