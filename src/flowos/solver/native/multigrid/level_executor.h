#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/exact_sum.h"
#include "base/for_each.h"
#include "multigrid/hierarchy.h"
#include "ordering/groups.h"
#include "threads/team.h"

namespace flowos::solve {

// Who computes the levels of a hierarchy: here threads of one process, all of them. RankLevels of
// mpi/ is the same for many ranks.
template <class T>
class LevelExecutor {
 public:
  LevelExecutor(const Hierarchy<T>& hierarchy, int threads)
      : hierarchy_(hierarchy), threads_(threads) {}

  // work(groups) for the colours of level l from `first` to before `past`, as if they were one.
  template <class Work>
  void each(std::size_t l, std::size_t first, std::size_t past, const Work& work) const {
    const Level<T>& level = hierarchy_.levels[l];
    share_out(level.colour_starts[first], level.colour_starts[past], level.view().steps, threads_,
              work);
  }
  // The same for one colour, of which others then get what they read of the vector it wrote.
  template <class Work>
  void turn(std::size_t l, std::size_t colour, T*, const Work& work) const {
    each(l, colour, colour + 1, work);
  }
  // work(row, place) for the rows of these groups of the finest level.
  template <class Work>
  void each_row(Groups groups, const Work& work) const {
    solve::each_row(hierarchy_.ordering, groups, work);
  }

  // Where aggregates of level l lie anywhere: work(aggregates) for those whose rows are added up
  // here, all of which are in `between` by then.
  template <class Work>
  void add_up(std::size_t l, T*, const Work& work) const {
    each_aggregate(l, work);
  }
  // work(aggregates) for those that are read here.
  template <class Work>
  void spread_out(std::size_t l, const Work& work) const {
    each_aggregate(l, work);
  }
  // Hands the right-hand side of the level after l to those who need all of it.
  void hand_down(std::size_t, T*) const {}

  // Adds what each group of level l came to.
  void add(std::size_t, const std::vector<double>& of_groups, ExactSum& sum) const {
    for (const double term : of_groups) sum.add(term);
  }
  double total(const ExactSum& sum) const { return sum.value(); }

 private:
  template <class Work>
  void each_aggregate(std::size_t l, const Work& work) const {
    const Transfer& down = hierarchy_.levels[l].down;
    share_out(0, static_cast<std::int64_t>(down.coarse_place.size()), 1, threads_, work);
  }

  const Hierarchy<T>& hierarchy_;
  int threads_;
};

}  // namespace flowos::solve
