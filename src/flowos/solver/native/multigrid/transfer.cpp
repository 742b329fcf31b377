#include "multigrid/transfer.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/at_once.h"
#include "base/for_each.h"
#include "multigrid/kernels.h"
#include "simd/lanes_matrix.h"

namespace flowos::solve {

namespace {

// Where the coarse vector has what is spread to a place. The line of zeros after the last place is
// the one after the last coarse place.
template <class T>
struct CoarsePlace {
  int steps;
  Within within;

  std::int32_t operator()(std::int32_t place) const {
    const std::int32_t slice = place / kLanes<T>, group = slice / steps;
    const std::int32_t step = within.step[slice % steps];
    return (group * within.coarse_steps + step) * kLanes<T> + place % kLanes<T>;
  }
};

}  // namespace

template <class T>
void Spread<T>::Part::add(const GroupEntries<T>& from, int steps, const Within& within) {
  const CoarsePlace<T> coarse{.steps = steps, .within = within};
  for (std::int32_t e = 0; e < from.starts[steps]; ++e) {
    const std::int32_t code = from.codes[e];
    if (code >= 0) {
      codes.push_back(coarse(code));
      continue;
    }
    codes.push_back(~static_cast<std::int32_t>(indices.size()));
    for (int lane = 0; lane < kLanes<T>; ++lane) {
      indices.push_back(coarse(from.indices[~code + lane]));
    }
  }
}

template <class T>
Spread<T>::Spread(const LevelView<T>& level, std::int64_t groups, const Within& within, int threads)
    : groups_(at(groups)) {
  const int count = static_cast<int>(std::clamp<std::int64_t>(groups, 1, threads));
  parts_.resize(at(count));
  at_once(count, [&](int i) {
    Part& part = parts_[at(i)];
    const std::int64_t first = groups * i / count, past = groups * (i + 1) / count;
    std::int64_t entries = 0;
    for (std::int64_t group = first; group < past; ++group) {
      entries += level.lower[group].starts[level.steps];
    }
    part.codes.reserve(at(entries));
    for (std::int64_t group = first; group < past; ++group) {
      part.add(level.lower[group], level.steps, within);
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
