#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "coarse_kernels.h"
#include "coarse_level.h"
#include "coarse_levels.h"
#include "coarse_line.h"
#include "groups.h"
#include "ordering_parts.h"
#include "team.h"

namespace flowos::solve {

// A V-cycle: on each level a forward Gauss-Seidel sweep from nothing, the correction by the next
// level, a backward sweep. The finest level's sweeps are the caller's, who has more to do in them.
template <class T>
class Cycle {
 public:
  Cycle(Hierarchy<T> hierarchy, int threads)
      : threads_(threads),
        kernels_(*all_coarse_kernels<T>().back()),
        hierarchy_(std::move(hierarchy)) {}

  const Hierarchy<T>& hierarchy() const { return hierarchy_; }
  Level<T>& finest() { return hierarchy_.levels[0]; }
  const CoarseKernels<T>& kernels_of(const Level<T>& level) const {
    return level.even() ? *kernels_.even : kernels_;
  }

  // All of it: y = M^-1 r of level l.
  void run(std::size_t l);
  // work(groups) for the colours from `first` to before `past`, as if they were one.
  template <class Work>
  void share(const Level<T>& level, std::size_t first, std::size_t past, const Work& work);
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

  template <class Work>
  void share_each(const Level<T>& level, std::size_t first, std::size_t past, const Work& work);
  Coarser coarser_than(std::size_t l);

  int threads_;
  const CoarseKernels<T>& kernels_;
  Hierarchy<T> hierarchy_;
};

template <class T>
template <class Work>
void Cycle<T>::share(const Level<T>& level, std::size_t first, std::size_t past, const Work& work) {
  share_out(level.colour_starts[first], level.colour_starts[past], level.view().steps, threads_,
            work);
}

// The same group by group, so that what one does with it is there for the next to go on with.
template <class T>
template <class Work>
void Cycle<T>::share_each(const Level<T>& level, std::size_t first, std::size_t past,
                          const Work& work) {
  share(level, first, past, [&](Groups groups) {
    for (std::int64_t g = groups.first; g < groups.past; ++g) work(Groups{g, g + 1});
  });
}

template <class T>
typename Cycle<T>::Coarser Cycle<T>::coarser_than(std::size_t l) {
  if (l + 1 < hierarchy_.levels.size()) {
    return {.r = &hierarchy_.levels[l + 1].r, .y = &hierarchy_.levels[l + 1].y};
  }
  if (hierarchy_.dense.rows > 0) return {.r = &hierarchy_.dense.r, .y = &hierarchy_.dense.y};
  return {};
}

// What is left is -U y. Rows of the last colour have others after them in their own block only.
template <class T>
template <class Sweep>
void Cycle<T>::sweep_down(std::size_t l, const Sweep& sweep) {
  Level<T>& level = hierarchy_.levels[l];
  const CoarseKernels<T>& kernels = kernels_of(level);
  const LevelView<T> view = level.view();
  const Coarser coarser = coarser_than(l);
  const Transfer& down = level.down;
  const auto leave = [&](Groups groups) {
    if (!coarser.r) return;
    if (down.coarse_steps > 0) {
      kernels.restrict_within(view, groups, down.within(), level.y.data(), coarser.r->data());
    } else {
      kernels.residual(view, groups, level.y.data(), level.between.data());
    }
  };
  const std::size_t last = level.colour_starts.size() - 2;
  for (std::size_t colour = 0; colour < last; ++colour) share(level, colour, colour + 1, sweep);
  share_each(level, last, last + 1, [&](Groups group) {
    sweep(group);
    leave(group);
  });
  share(level, 0, last, leave);
  share_out(0, static_cast<std::int64_t>(down.coarse_place.size()), 1, threads_, [&](Groups some) {
    for (std::int64_t i = some.first; i < some.past; ++i) {
      T sum = 0;
      for (std::int32_t k = down.starts[at(i)]; k < down.starts[at(i + 1)]; ++k) {
        sum += level.between[at(down.places[at(k)])];
      }
      (*coarser.r)[at(down.coarse_place[at(i)])] = sum;
    }
  });
}

template <class T>
template <class Sweep>
void Cycle<T>::sweep_up(std::size_t l, const Sweep& sweep) {
  Level<T>& level = hierarchy_.levels[l];
  const Transfer& down = level.down;
  const Coarser coarser = coarser_than(l);
  share_out(0, static_cast<std::int64_t>(down.coarse_place.size()), 1, threads_, [&](Groups some) {
    for (std::int64_t i = some.first; i < some.past; ++i) {
      const T value = (*coarser.y)[at(down.coarse_place[at(i)])];
      for (std::int32_t k = down.starts[at(i)]; k < down.starts[at(i + 1)]; ++k) {
        level.between[at(down.places[at(k)])] = value;
      }
    }
  });
  for (std::size_t colour = level.colour_starts.size() - 1; colour-- > 0;) {
    share(level, colour, colour + 1, [&](Groups groups) { sweep(colour, groups); });
  }
}

// Where a backward sweep reads it.
template <class T>
const T* Cycle<T>::correction(std::size_t l) {
  const Level<T>& level = hierarchy_.levels[l];
  return level.down.coarse_steps > 0 ? coarser_than(l).y->data() : level.between.data();
}

template <class T>
void Cycle<T>::correct(std::size_t l) {
  Dense<T>& dense = hierarchy_.dense;
  if (l + 1 < hierarchy_.levels.size()) {
    run(l + 1);
  } else if (dense.rows > 0) {
    kernels_.dense(dense.rows, dense.inverse.data(), dense.r.data(), dense.y.data());
  }
}

template <class T>
void Cycle<T>::run(std::size_t l) {
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

template <class T>
double Cycle<T>::reduction() const {
  double sum = 0;
  for (const Level<T>& level : hierarchy_.levels) sum += sum_in_order(level.sums);
  const Dense<T>& dense = hierarchy_.dense;
  for (std::int64_t i = 0; i < dense.rows; ++i) {
    sum += static_cast<double>(dense.r[at(i)]) * static_cast<double>(dense.y[at(i)]);
  }
  return sum;
}

}  // namespace flowos::solve
