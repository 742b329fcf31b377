#pragma once

#include <cstdint>
#include <vector>

#include "base/storage.h"
#include "multigrid/kernels.h"
#include "simd/lanes_matrix.h"

namespace flowos::solve {

// The lower entries of a level times what spreads a correction over aggregates that lie in blocks:
// the same values, but their factors are taken from the coarse vector.
template <class T>
class Spread {
 public:
  Spread() = default;
  Spread(const LevelView<T>& level, std::int64_t groups, const Within& within, int threads);

  const GroupEntries<T>* groups() const { return groups_.data(); }
  std::int64_t bytes() const;  // without the values

 private:
  struct Part {
    Line<std::int32_t> codes, indices;

    void add(const GroupEntries<T>& from, int steps, const Within& within);
  };

  std::vector<Part> parts_;
  std::vector<GroupEntries<T>> groups_;
};

}  // namespace flowos::solve
