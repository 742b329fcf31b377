#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/exact_sum.h"
#include "base/for_each.h"
#include "base/storage.h"
#include "multigrid/hierarchy.h"
#include "multigrid/kernels.h"
#include "ordering/groups.h"
#include "simd/lanes_matrix.h"

namespace flowos::solve {

// A V-cycle of multigrid: on each level a forward Gauss-Seidel sweep from zero, the correction of
// the next coarser level, and a backward sweep, so that the cycle is symmetric. The sweeps of the
// finest level are the caller's, which does more in them. Levels: ThreadLevels or RankLevels
// (mpi/).
template <class T, class Levels>
class Cycle {
 public:
  Cycle(Hierarchy<T>& hierarchy, Levels& levels)
      : levels_(levels), kernels_(*all_coarse_kernels<T>().back()), hierarchy_(hierarchy) {}

  Level<T>& finest() { return hierarchy_.levels[0]; }
  const CoarseKernels<T>& kernels_of(const Level<T>& level) const {
    return level.even() ? *kernels_.even : kernels_;
  }

  // The whole cycle: y = M^-1 r of level l.
  void run(std::size_t l);
  // Its parts. Pre-smoothing, sweep(groups) in order of colours, and restriction of the residual.
  template <class Sweep>
  void sweep_down(std::size_t l, const Sweep& sweep);
  // The cycle of the next level.
  void correct(std::size_t l);
  // Interpolation of its correction, and post-smoothing: sweep(colour, groups) from the last colour
  // to the first, which reads correction().
  template <class Sweep>
  void sweep_up(std::size_t l, const Sweep& sweep);
  const T* correction(std::size_t l);
  // r'z, known before sweep_up: as the cycle is symmetric, each level adds y'D y of its forward
  // sweep.
  double reduction();

 private:
  struct Coarser {  // null: this is the coarsest level
    Line<T>* r = nullptr;
    Line<T>* y = nullptr;
  };

  Coarser coarser_than(std::size_t l);

  Levels& levels_;
  const CoarseKernels<T>& kernels_;
  Hierarchy<T>& hierarchy_;
};

template <class T, class Levels>
typename Cycle<T, Levels>::Coarser Cycle<T, Levels>::coarser_than(std::size_t l) {
  if (l + 1 < hierarchy_.levels.size()) {
    return {.r = &hierarchy_.levels[l + 1].r, .y = &hierarchy_.levels[l + 1].y};
  }
  if (hierarchy_.dense.rows > 0) return {.r = &hierarchy_.dense.r, .y = &hierarchy_.dense.y};
  return {};
}

// The residual is -U y. Rows of the last colour depend on later rows of their own block only: there
// each group is restricted right after its sweep, while it is in the cache.
template <class T, class Levels>
template <class Sweep>
void Cycle<T, Levels>::sweep_down(std::size_t l, const Sweep& sweep) {
  Level<T>& level = hierarchy_.levels[l];
  const CoarseKernels<T>& kernels = kernels_of(level);
  const LevelView<T> view = level.view();
  const Coarser coarser = coarser_than(l);
  const Transfer& down = level.down;
  T *y = level.y.data(), *between = level.between.data();
  const auto restrict_groups = [&](Groups groups) {
    if (!coarser.r) return;
    if (down.coarse_steps > 0) {
      kernels.restrict_within(view, groups, down.within(), y, coarser.r->data());
    } else {
      kernels.residual(view, groups, y, between);
    }
  };
  auto& executor = levels_.of(l);
  const int last = executor.colours() - 1;
  for (int colour = 0; colour < last; ++colour) executor.turn(colour, y, sweep);
  executor.turn(last, y, [&](Groups groups) {
    for (std::int64_t g = groups.first; g < groups.past; ++g) {
      sweep({g, g + 1});
      restrict_groups({g, g + 1});
    }
  });
  executor.each(0, last, restrict_groups);
  if (!coarser.r) return;
  levels_.restrict_each(l, between, [&](Groups some) {
    for (std::int64_t i = some.first; i < some.past; ++i) {
      T sum = 0;
      for (std::int32_t k = down.starts[at(i)]; k < down.starts[at(i + 1)]; ++k) {
        sum += between[down.places[at(k)]];
      }
      (*coarser.r)[at(down.coarse_place[at(i)])] = sum;
    }
  });
  levels_.share_coarse(l, coarser.r->data());
}

template <class T, class Levels>
template <class Sweep>
void Cycle<T, Levels>::sweep_up(std::size_t l, const Sweep& sweep) {
  Level<T>& level = hierarchy_.levels[l];
  const Transfer& down = level.down;
  const Coarser coarser = coarser_than(l);
  levels_.interpolate_each(l, [&](Groups some) {
    for (std::int64_t i = some.first; i < some.past; ++i) {
      const T value = (*coarser.y)[at(down.coarse_place[at(i)])];
      for (std::int32_t k = down.starts[at(i)]; k < down.starts[at(i + 1)]; ++k) {
        level.between[at(down.places[at(k)])] = value;
      }
    }
  });
  auto& executor = levels_.of(l);
  for (int colour = executor.colours() - 1; colour >= 0; --colour) {
    executor.turn(colour, level.y.data(), [&](Groups groups) { sweep(colour, groups); });
  }
}

template <class T, class Levels>
const T* Cycle<T, Levels>::correction(std::size_t l) {
  const Level<T>& level = hierarchy_.levels[l];
  return level.down.coarse_steps > 0 ? coarser_than(l).y->data() : level.between.data();
}

template <class T, class Levels>
void Cycle<T, Levels>::correct(std::size_t l) {
  Dense<T>& dense = hierarchy_.dense;
  if (l + 1 < hierarchy_.levels.size()) {
    run(l + 1);
  } else if (dense.rows > 0) {
    kernels_.dense(dense.rows, dense.inverse.data(), dense.r.data(), dense.y.data());
  }
}

template <class T, class Levels>
void Cycle<T, Levels>::run(std::size_t l) {
  Level<T>& level = hierarchy_.levels[l];
  const CoarseKernels<T>& kernels = kernels_of(level);
  const LevelView<T> view = level.view();
  const T* c = correction(l);
  T* y = level.y.data();
  sweep_down(l, [&](Groups groups) {
    kernels.forward(view, groups, level.r.data(), y, level.sums.data());
  });
  correct(l);
  sweep_up(l, [&](int, Groups groups) { kernels.backward(view, groups, c, y); });
}

template <class T, class Levels>
double Cycle<T, Levels>::reduction() {
  ExactSums<1> of_levels;
  for (std::size_t l = 0; l < hierarchy_.levels.size(); ++l) {
    const std::array<const double*, 1> of_groups = {hierarchy_.levels[l].sums.data()};
    levels_.of(l).add(of_groups, of_levels);
  }
  double sum = levels_.of(0).total(of_levels)[0];
  const Dense<T>& dense = hierarchy_.dense;
  for (std::int64_t i = 0; i < dense.rows; ++i) {
    sum += static_cast<double>(dense.r[at(i)]) * static_cast<double>(dense.y[at(i)]);
  }
  return sum;
}

}  // namespace flowos::solve
