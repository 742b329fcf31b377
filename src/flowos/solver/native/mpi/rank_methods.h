#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ic/cholesky.h"
#include "ic/pivots.h"
#include "krylov/solver.h"
#include "matrix/properties.h"
#include "mpi/level_owners.h"
#include "mpi/rank_executor.h"
#include "mpi/rank_levels.h"
#include "mpi/share.h"
#include "multigrid/hierarchy.h"
#include "multigrid/preconditioner.h"
#include "ordering/ordering.h"
#include "simd/lanes_matrix.h"

namespace flowos::solve {

inline std::int64_t over_ranks(std::int64_t count, MPI_Comm comm) {
  MPI_Allreduce(MPI_IN_PLACE, &count, 1, MPI_INT64_T, MPI_SUM, comm);
  return count;
}

// The two preconditioners of solver.cpp in T, over ranks, and their statistics.

template <class T>
class RankCholesky {
 public:
  // evenness: of the whole matrix.
  RankCholesky(const Share& share, const Dropping& dropping, const Evenness& evenness,
               RankExecutor& executor, MPI_Comm comm)
      : comm_(comm),
        relax_(dropping.relax),
        pivots_(Pivoting(share.matrix.view(), share.order, executor, dropping).build()),
        method_(share.matrix.view(), share.order, executor, pivots_, evenness) {}

  IncompleteCholesky<T, RankExecutor>& method() { return method_; }

  SetupSummary summary(const std::string& blocks, const Ordering& order) const {
    return {.blocks = blocks,
            .block_rows = order.block_rows,
            .colours = order.colours(),
            .relax = relax_,
            .shift = pivots_.shift,
            .eisenstat = true,
            .bytes_per_iteration = over_ranks(method_.bytes_per_iteration(), comm_),
            .flops_per_iteration = over_ranks(method_.flops_per_iteration(), comm_)};
  }

 private:
  MPI_Comm comm_;
  double relax_;
  Pivots pivots_;
  IncompleteCholesky<T, RankExecutor> method_;
};

template <class T>
class RankMultigrid {
 public:
  // share: of the finest level.
  RankMultigrid(Hierarchy<T>& hierarchy, const Share& share, const LevelOwners& owners, int threads,
                MPI_Comm comm)
      : comm_(comm),
        hierarchy_(hierarchy),
        levels_(hierarchy, share, owners, threads, comm),
        method_(hierarchy, levels_) {}

  MultigridPreconditioner<T, RankLevels<T>>& method() { return method_; }

  SetupSummary summary() const {
    SetupSummary summary{.blocks = hierarchy_.blocks,
                         .block_rows = hierarchy_.ordering.block_rows,
                         .colours = hierarchy_.ordering.colours(),
                         .levels = static_cast<int>(hierarchy_.rows.size())};
    for (const Level<T>& level : hierarchy_.levels) {
      const bool finest = &level == hierarchy_.levels.data();
      summary.bytes_per_iteration += level.bytes(finest).in_iteration;
      summary.flops_per_iteration += level.flops(finest);
    }
    summary.bytes_per_iteration = over_ranks(summary.bytes_per_iteration, comm_);
    summary.flops_per_iteration = over_ranks(summary.flops_per_iteration, comm_);
    return summary;
  }

 private:
  MPI_Comm comm_;
  const Hierarchy<T>& hierarchy_;
  RankLevels<T> levels_;
  MultigridPreconditioner<T, RankLevels<T>> method_;
};

}  // namespace flowos::solve
