#pragma once

#include <cstdint>
#include <vector>

#include "coarse_level.h"
#include "coarse_line.h"

namespace flowos::solve {

// So many codes can be read before the first and after the last one.
constexpr int kCodesAround = 32;

// The entries of one side of the diagonal in lanes, where so few values occur that all lanes of an
// entry can have the same one, which is stored once. Lanes without it take their factor from the
// line of zeros that comes after the last place.
template <class T>
class EvenLanes {
 public:
  EvenLanes() = default;
  // backward: steps are gone through from the last, so that what comes next to a row comes after
  // it.
  EvenLanes(const GroupEntries<T>* of_groups, std::int64_t groups, int steps, bool backward,
            int threads);

  const GroupEntries<T>* groups() const { return groups_.data(); }
  std::int64_t bytes() const;
  std::int64_t entries() const;  // with those that are 0

 private:
  struct Part {
    Line<std::int32_t> starts, codes, indices;
    Line<T> values;  // one of each entry
  };
  class Writer;

  std::vector<Part> parts_;
  std::vector<GroupEntries<T>> groups_;
};

}  // namespace flowos::solve
