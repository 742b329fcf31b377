#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "matrix/grid.h"
#include "matrix/matrix.h"
#include "matrix/properties.h"
#include "multigrid/hierarchy.h"
#include "multigrid/preconditioner.h"
#include "multigrid/thread_levels.h"
#include "ordering/ordering.h"

namespace flowos::solve {

// Statistics of a hierarchy and its preconditioner.
struct MultigridSummary {
  std::string blocks;  // of the finest level: "tiles 8x8x8", "points"
  int block_rows = 0, colours = 0;
  std::vector<std::int64_t> rows;  // of each level
  double fill = 1;                 // stored entries over those of the matrix
  std::int64_t bytes_per_iteration = 0, flops_per_iteration = 0, memory_bytes = 0;
  double order_seconds = 0, store_seconds = 0, coarse_seconds = 0;
};

// A hierarchy of aggregates and its V-cycle, by threads of this process, in T. Why it smooths and
// coarsens as it does: docs/adr/0007. The same bits whatever the threads.
template <class T>
class Multigrid {
 public:
  template <class Index>
  Multigrid(const Csr<Index>& matrix, const std::optional<Grid>& grid, const Dominance& dominance,
            int threads)
      : hierarchy_(matrix, grid, dominance, threads),
        levels_(hierarchy_, threads),
        preconditioner_(hierarchy_, levels_),
        entries_(matrix.starts[matrix.rows] - matrix.rows) {}
  Multigrid(const Multigrid&) = delete;
  Multigrid& operator=(const Multigrid&) = delete;

  MultigridPreconditioner<T, ThreadLevels<T>>& preconditioner() { return preconditioner_; }

  MultigridSummary summary() const {
    const Ordering& ordering = hierarchy_.ordering;
    MultigridSummary summary{
        .blocks = hierarchy_.blocks,
        .block_rows = ordering.block_rows,
        .colours = ordering.colours(),
        .rows = hierarchy_.rows,
        .memory_bytes = preconditioner_.memory_bytes() + 4 * (ordering.rows + ordering.places()),
        .order_seconds = hierarchy_.order_seconds,
        .store_seconds = hierarchy_.store_seconds,
        .coarse_seconds = hierarchy_.coarse_seconds};
    for (const Level<T>& level : hierarchy_.levels) {
      const bool finest = &level == hierarchy_.levels.data();
      const LevelBytes bytes = level.bytes(finest);
      summary.bytes_per_iteration += bytes.in_iteration;
      summary.flops_per_iteration += level.flops(finest);
      summary.memory_bytes += bytes.stored;
      if (finest && entries_ > 0) {
        summary.fill = static_cast<double>(level.entries()) / static_cast<double>(entries_);
      }
    }
    return summary;
  }

 private:
  Hierarchy<T> hierarchy_;
  ThreadLevels<T> levels_;
  MultigridPreconditioner<T, ThreadLevels<T>> preconditioner_;
  std::int64_t entries_;  // of the matrix, off its diagonal
};

}  // namespace flowos::solve
