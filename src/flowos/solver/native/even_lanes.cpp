#include "even_lanes.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
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
    part_.begin_group();
    for (int step = 0; step < steps; ++step) {
      part_.begin_step();
      // The step that was computed just before comes last, as it is there last.
      const std::int32_t first_entry = from.starts[step], past = from.starts[step + 1];
      for (std::int32_t i = first_entry; i < past; ++i) {
        const std::int32_t e = backward_ ? first_entry + past - 1 - i : i;
        write_entry(from.codes[e], from.indices, from.values + std::ptrdiff_t{e} * kLanes<T>);
      }
    }
    part_.end_group();
  }

 private:
  void write_entry(std::int32_t code, const std::int32_t* indices, const T* values) {
    if (code >= 0 && values[0] != 0 &&
        std::all_of(values, values + kLanes<T>, [&](T value) { return value == values[0]; })) {
      part_.add(code, values[0]);
    } else {
      write_gathered(code, indices, values);
    }
  }

  // Once for each value.
  void write_gathered(std::int32_t code, const std::int32_t* indices, const T* values) {
    std::uint32_t done = 0;
    for (int lane = 0; lane < kLanes<T>; ++lane) {
      if (values[lane] == 0 || (done >> static_cast<unsigned>(lane) & 1U) != 0) continue;
      std::array<std::int32_t, kLanes<T>> places;
      for (int other = 0; other < kLanes<T>; ++other) {
        const bool same = values[other] == values[lane];
        if (same) done |= 1U << static_cast<unsigned>(other);
        const std::int32_t place = code >= 0 ? code + other : indices[~code + other];
        places[at(other)] = same ? place : zeros_ + other;
      }
      part_.add_gathered(places, values[lane]);
    }
  }

  Part& part_;
  std::int32_t zeros_;
  bool backward_;
};

template <class T>
EvenLanes<T>::EvenLanes(const GroupEntries<T>* of_groups, std::int64_t groups, int steps,
                        bool backward, int threads) {
  const int count = static_cast<int>(std::clamp<std::int64_t>(groups, 1, threads));
  parts_.resize(at(count));
  const auto zeros = static_cast<std::int32_t>(groups * steps * kLanes<T>);
  at_once(count, [&](int i) {
    Part& part = parts_[at(i)];
    Writer writer(part, zeros, backward);
    for (std::int64_t group = groups * i / count; group < groups * (i + 1) / count; ++group) {
      writer.write(of_groups[group], steps);
    }
    part.end();
  });
  point_to_parts(steps);
}

template <class T>
EvenLanes<T>::EvenLanes(std::vector<Part> parts, int steps) : parts_(std::move(parts)) {
  point_to_parts(steps);
}

template <class T>
void EvenLanes<T>::point_to_parts(int steps) {
  for (const Part& part : parts_) {
    const std::int32_t* starts = part.starts.data();
    for (const std::size_t code : part.group_codes) {
      groups_.push_back({.starts = starts,
                         .codes = part.codes.data() + code,
                         .indices = part.indices.data(),
                         .values = part.values.data() + code});
      starts += steps + 1;
    }
  }
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
