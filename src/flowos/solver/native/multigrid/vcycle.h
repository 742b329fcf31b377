#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/exact_sum.h"
#include "base/for_each.h"
#include "base/storage.h"
#include "multigrid/hierarchy.h"
#include "multigrid/kernels.h"
#include "ordering/groups.h"
#include "simd/lanes_matrix.h"

namespace flowos::solve {

// A V-cycle: on each level a forward Gauss-Seidel sweep from nothing, the correction by the next
// level, a backward sweep. The finest level's sweeps are the caller's, who has more to do in them.
// The executor computes the groups, and hands on what others need of them: threads
// (multigrid/level_executor.h), or ranks (mpi/rank_levels.h).
template <class T, class Executor>
class Cycle {
 public:
  Cycle(Hierarchy<T>& hierarchy, Executor& executor)
      : executor_(executor), kernels_(*all_coarse_kernels<T>().back()), hierarchy_(hierarchy) {}

  Level<T>& finest() { return hierarchy_.levels[0]; }
  const CoarseKernels<T>& kernels_of(const Level<T>& level) const {
    return level.even() ? *kernels_.even : kernels_;
  }

  // All of it: y = M^-1 r of level l.
  void run(std::size_t l);
  // sweep(groups) from colour to colour, and what is left of the residual to the next level.
  template <class Sweep>
  void sweep_down(std::size_t l, const Sweep& sweep);
  // The next level's correction, after sweep_down.
  void correct(std::size_t l);
  // sweep(colour, groups) from the last colour to the first, when correction() is what the next
  // level has to say.
  template <class Sweep>
  void sweep_up(std::size_t l, const Sweep& sweep);
  const T* correction(std::size_t l);
  // r'z before sweep_up: as the cycle is symmetric, each level adds y'D y of its forward sweep.
  double reduction() const;

 private:
  struct Coarser {  // null: there is no level to go on to
    Line<T>* r = nullptr;
    Line<T>* y = nullptr;
  };

  Coarser coarser_than(std::size_t l);

  Executor& executor_;
  const CoarseKernels<T>& kernels_;
  Hierarchy<T>& hierarchy_;
};

template <class T, class Executor>
typename Cycle<T, Executor>::Coarser Cycle<T, Executor>::coarser_than(std::size_t l) {
  if (l + 1 < hierarchy_.levels.size()) {
    return {.r = &hierarchy_.levels[l + 1].r, .y = &hierarchy_.levels[l + 1].y};
  }
  if (hierarchy_.dense.rows > 0) return {.r = &hierarchy_.dense.r, .y = &hierarchy_.dense.y};
  return {};
}

// What is left is -U y. Rows of the last colour have others after them in their own block only: it
// is computed group by group, so that what one does with it is there for the next to go on with.
template <class T, class Executor>
template <class Sweep>
void Cycle<T, Executor>::sweep_down(std::size_t l, const Sweep& sweep) {
  Level<T>& level = hierarchy_.levels[l];
  const CoarseKernels<T>& kernels = kernels_of(level);
  const LevelView<T> view = level.view();
  const Coarser coarser = coarser_than(l);
  const Transfer& down = level.down;
  T *y = level.y.data(), *between = level.between.data();
  const auto leave = [&](Groups groups) {
    if (!coarser.r) return;
    if (down.coarse_steps > 0) {
      kernels.restrict_within(view, groups, down.within(), y, coarser.r->data());
    } else {
      kernels.residual(view, groups, y, between);
    }
  };
  const std::size_t last = level.colour_starts.size() - 2;
  for (std::size_t colour = 0; colour < last; ++colour) executor_.turn(l, colour, y, sweep);
  executor_.turn(l, last, y, [&](Groups groups) {
    for (std::int64_t g = groups.first; g < groups.past; ++g) {
      sweep({g, g + 1});
      leave({g, g + 1});
    }
  });
  executor_.each(l, 0, last, leave);
  if (!coarser.r) return;
  executor_.add_up(l, between, [&](Groups some) {
    for (std::int64_t i = some.first; i < some.past; ++i) {
      T sum = 0;
      for (std::int32_t k = down.starts[at(i)]; k < down.starts[at(i + 1)]; ++k) {
        sum += between[down.places[at(k)]];
      }
      (*coarser.r)[at(down.coarse_place[at(i)])] = sum;
    }
  });
  executor_.hand_down(l, coarser.r->data());
}

template <class T, class Executor>
template <class Sweep>
void Cycle<T, Executor>::sweep_up(std::size_t l, const Sweep& sweep) {
  Level<T>& level = hierarchy_.levels[l];
  const Transfer& down = level.down;
  const Coarser coarser = coarser_than(l);
  executor_.spread_out(l, [&](Groups some) {
    for (std::int64_t i = some.first; i < some.past; ++i) {
      const T value = (*coarser.y)[at(down.coarse_place[at(i)])];
      for (std::int32_t k = down.starts[at(i)]; k < down.starts[at(i + 1)]; ++k) {
        level.between[at(down.places[at(k)])] = value;
      }
    }
  });
  for (std::size_t colour = level.colour_starts.size() - 1; colour-- > 0;) {
    executor_.turn(l, colour, level.y.data(), [&](Groups groups) { sweep(colour, groups); });
  }
}

// Where a backward sweep reads it.
template <class T, class Executor>
const T* Cycle<T, Executor>::correction(std::size_t l) {
  const Level<T>& level = hierarchy_.levels[l];
  return level.down.coarse_steps > 0 ? coarser_than(l).y->data() : level.between.data();
}

template <class T, class Executor>
void Cycle<T, Executor>::correct(std::size_t l) {
  Dense<T>& dense = hierarchy_.dense;
  if (l + 1 < hierarchy_.levels.size()) {
    run(l + 1);
  } else if (dense.rows > 0) {
    kernels_.dense(dense.rows, dense.inverse.data(), dense.r.data(), dense.y.data());
  }
}

template <class T, class Executor>
void Cycle<T, Executor>::run(std::size_t l) {
  Level<T>& level = hierarchy_.levels[l];
  const CoarseKernels<T>& kernels = kernels_of(level);
  const LevelView<T> view = level.view();
  const T* c = correction(l);
  T* y = level.y.data();
  sweep_down(l, [&](Groups groups) {
    kernels.forward(view, groups, level.r.data(), y, level.sums.data());
  });
  correct(l);
  sweep_up(l, [&](std::size_t, Groups groups) { kernels.backward(view, groups, c, y); });
}

template <class T, class Executor>
double Cycle<T, Executor>::reduction() const {
  ExactSum of_levels;
  for (std::size_t l = 0; l < hierarchy_.levels.size(); ++l) {
    executor_.add(l, hierarchy_.levels[l].sums, of_levels);
  }
  double sum = executor_.total(of_levels);
  const Dense<T>& dense = hierarchy_.dense;
  for (std::int64_t i = 0; i < dense.rows; ++i) {
    sum += static_cast<double>(dense.r[at(i)]) * static_cast<double>(dense.y[at(i)]);
  }
  return sum;
}

}  // namespace flowos::solve
