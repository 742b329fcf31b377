#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "multigrid/hierarchy.h"
#include "ordering/groups.h"
#include "threads/team.h"
#include "threads/thread_executor.h"

namespace flowos::solve {

// The executors of all levels of a hierarchy, and the transfers between levels, by threads;
// RankLevels (mpi/) does the same with MPI ranks.
template <class T>
class ThreadLevels {
 public:
  ThreadLevels(const Hierarchy<T>& hierarchy, int threads)
      : hierarchy_(hierarchy), threads_(threads) {
    for (const Level<T>& level : hierarchy.levels) {
      levels_.emplace_back(level.colour_starts, level.view().steps, threads);
    }
  }

  ThreadExecutor& of(std::size_t l) { return levels_[l]; }

  // work(row, place) for the rows of these groups of the finest level.
  template <class Work>
  void each_row(Groups groups, const Work& work) const {
    solve::each_row(hierarchy_.ordering, groups, work);
  }

  // Restriction and interpolation where aggregates lie anywhere: work(aggregates) for those of
  // level l that this process adds up, from lines of `residual` that it gets first,
  template <class Work>
  void restrict_each(std::size_t l, T*, const Work& work) const {
    each_aggregate(l, work);
  }
  // and for those whose correction it reads.
  template <class Work>
  void interpolate_each(std::size_t l, const Work& work) const {
    each_aggregate(l, work);
  }
  // After a restriction: the right-hand side of the level after l, to all that compute it.
  void share_coarse(std::size_t, T*) const {}

 private:
  template <class Work>
  void each_aggregate(std::size_t l, const Work& work) const {
    const Transfer& down = hierarchy_.levels[l].down;
    share_out(0, static_cast<std::int64_t>(down.coarse_place.size()), 1, threads_, work);
  }

  const Hierarchy<T>& hierarchy_;
  int threads_;
  std::vector<ThreadExecutor> levels_;
};

}  // namespace flowos::solve
