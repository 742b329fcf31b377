#include "coarse_spread.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "at_once.h"
#include "coarse_kernels.h"
#include "coarse_level.h"
#include "ordering_parts.h"

namespace flowos::solve {

template <class T>
Spread<T>::Spread(const LevelView<T>& level, std::int64_t groups, const Within& within, int threads)
    : groups_(at(groups)) {
  const int count = static_cast<int>(std::clamp<std::int64_t>(groups, 1, threads));
  parts_.resize(at(count));
  // The line of zeros after the last place is the one after the last coarse place.
  const auto coarse = [&](std::int32_t place) {
    const std::int32_t slice = place / kLanes<T>, group = slice / level.steps;
    const std::int32_t step = within.step[slice % level.steps];
    return (group * within.coarse_steps + step) * kLanes<T> + place % kLanes<T>;
  };
  at_once(count, [&](int i) {
    Part& part = parts_[at(i)];
    const std::int64_t first = groups * i / count, past = groups * (i + 1) / count;
    for (std::int64_t group = first; group < past; ++group) {
      const GroupEntries<T>& from = level.lower[group];
      const std::int32_t entries = from.starts[level.steps];
      for (std::int32_t e = 0; e < entries; ++e) {
        const std::int32_t code = from.codes[e];
        part.codes.push_back(code >= 0 ? coarse(code)
                                       : ~static_cast<std::int32_t>(part.indices.size()));
        for (int lane = 0; code < 0 && lane < kLanes<T>; ++lane) {
          part.indices.push_back(coarse(from.indices[~code + lane]));
        }
      }
    }
    const std::int32_t* codes = part.codes.data();
    for (std::int64_t group = first; group < past; ++group) {
      GroupEntries<T>& to = groups_[at(group)];
      to = level.lower[group];
      to.codes = codes;
      to.indices = part.indices.data();
      codes += to.starts[level.steps];
    }
  });
}

template <class T>
std::int64_t Spread<T>::bytes() const {
  std::size_t sum = 0;
  for (const Part& part : parts_) sum += 4 * (part.codes.size() + part.indices.size());
  return static_cast<std::int64_t>(sum);
}

template class Spread<float>;
template class Spread<double>;

}  // namespace flowos::solve
