#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/exact_sum.h"
#include "base/for_each.h"
#include "base/storage.h"
#include "multigrid/hierarchy.h"
#include "multigrid/kernels.h"
#include "multigrid/vcycle.h"
#include "ordering/groups.h"
#include "simd/lanes_matrix.h"

namespace flowos::solve {

// Conjugate gradients preconditioned by a cycle over a hierarchy, in T. The same bits whatever the
// executor (see Cycle). See Multigrid of multigrid.h for the steps of an iteration.
template <class T, class Executor>
class Gradients {
 public:
  Gradients(Hierarchy<T>& hierarchy, Executor& executor)
      : executor_(executor),
        scale_(hierarchy.scale()),
        cycle_(hierarchy, executor),
        colours_(hierarchy.levels[0].colour_starts.size() - 1),
        group_places_(hierarchy.ordering.group_places()),
        sums_(at(hierarchy.ordering.groups())) {
    for (Line<T>* vector : {&x_, &p_, &q_, &u_}) {
      if (vector == &u_ && cycle_.finest().even()) continue;
      vector->resize(at(hierarchy.ordering.places()));
    }
  }

  void precondition(std::span<const double> r, std::span<double> z);
  void load(std::span<const double> residual, double scale);
  void forget() { aimed_ = 0; }
  double advance();
  bool aim();
  void add_to(std::span<double> x);

  // Besides the hierarchy.
  std::int64_t memory_bytes() const {
    std::size_t values = 0;
    for (const Line<T>* vector : {&x_, &p_, &q_, &u_}) values += vector->size();
    return static_cast<std::int64_t>(values * sizeof(T));
  }

 private:
  GradientVectors<T> vectors() {
    Level<T>& level = cycle_.finest();
    return {.r = level.r.data(),
            .z = level.y.data(),
            .u = u_.data(),
            .p = p_.data(),
            .q = q_.data(),
            .x = x_.data()};
  }

  void clear(Line<T>& vector, Groups groups) const {
    std::fill(vector.begin() + groups.first * group_places_,
              vector.begin() + groups.past * group_places_, T(0));
  }

  double total() const {
    ExactSum sum;
    executor_.add(0, sums_, sum);
    return executor_.total(sum);
  }

  Executor& executor_;
  double scale_;  // of the matrix
  Cycle<T, Executor> cycle_;
  std::size_t colours_;
  std::int64_t group_places_;

  Line<T> x_, p_, q_, u_;     // see GradientVectors
  bool spoiled_ = true;       // they may hold what is no number
  std::vector<double> sums_;  // of each group
  double load_scale_ = 1;
  double alpha_ = 0;  // the step to be gone
  double gone_ = 0;   // the one that r has gone, but x not yet
  double aimed_ = 0;  // r'z when it was chosen; 0: there is no direction yet
};

template <class T, class Executor>
void Gradients<T, Executor>::load(std::span<const double> residual, double scale) {
  Line<T>& r = cycle_.finest().r;
  load_scale_ = scale;
  alpha_ = gone_ = 0;
  executor_.each(0, 0, colours_, [&](Groups groups) {
    clear(r, groups);
    clear(x_, groups);
    for (Line<T>* vector : {&p_, &q_, &u_}) {
      if (spoiled_ && !vector->empty()) clear(*vector, groups);
    }
    executor_.each_row(groups, [&](std::size_t row, std::size_t place) {
      r[place] = static_cast<T>(residual[row] * scale);
    });
  });
  spoiled_ = false;
}

template <class T, class Executor>
double Gradients<T, Executor>::advance() {
  Level<T>& level = cycle_.finest();
  const CoarseKernels<T>& kernels = cycle_.kernels_of(level);
  const LevelView<T> view = level.view();
  const GradientVectors<T> v = vectors();
  const T alpha = static_cast<T>(alpha_);
  cycle_.sweep_down(0, [&](Groups groups) {
    kernels.forward_update(view, groups, alpha, v, sums_.data(), level.sums.data());
  });
  gone_ = std::exchange(alpha_, 0);
  return total();
}

// The new direction is known before the backward sweep, and that ends with the first colour, whose
// rows have others before them in their own block only: so they go on to it at once.
template <class T, class Executor>
bool Gradients<T, Executor>::aim() {
  Level<T>& level = cycle_.finest();
  const CoarseKernels<T>& kernels = cycle_.kernels_of(level);
  const LevelView<T> view = level.view();
  const GradientVectors<T> v = vectors();
  cycle_.correct(0);
  const double rz = cycle_.reduction();
  if (!(rz > 0)) return false;
  const T gone = static_cast<T>(gone_), beta = static_cast<T>(aimed_ > 0 ? rz / aimed_ : 0);
  const T* c = cycle_.correction(0);
  const auto direct = [&](Groups groups) {
    kernels.direction(view, groups, gone, beta, v, sums_.data());
  };
  cycle_.sweep_up(0, [&](std::size_t colour, Groups groups) {
    if (colour > 0) return kernels.backward_keep(view, groups, c, v);
    for (std::int64_t g = groups.past - 1; g >= groups.first; --g) {
      kernels.backward_keep(view, {g, g + 1}, c, v);
      direct({g, g + 1});
    }
  });
  executor_.each(0, 1, colours_, direct);
  gone_ = 0;
  const double pq = total();
  spoiled_ = !(pq > 0);
  if (spoiled_) return false;
  alpha_ = rz / pq;
  aimed_ = rz;
  return true;
}

// Matrix and residual were multiplied: for s A x = t r, what was gone is t / s times as far.
template <class T, class Executor>
void Gradients<T, Executor>::add_to(std::span<double> x) {
  const double back = scale_ / load_scale_, gone = gone_ + alpha_;
  executor_.each(0, 0, colours_, [&](Groups groups) {
    executor_.each_row(groups, [&](std::size_t row, std::size_t place) {
      x[row] += back * (static_cast<double>(x_[place]) + gone * static_cast<double>(p_[place]));
      x_[place] = 0;
    });
  });
  gone_ = 0;
}

template <class T, class Executor>
void Gradients<T, Executor>::precondition(std::span<const double> r, std::span<double> z) {
  double greatest = 0;
  for (const double value : r) greatest = std::max(greatest, std::fabs(value));
  if (greatest == 0) {
    std::ranges::fill(z, 0.0);
    return;
  }
  load(r, 1 / greatest);
  forget();
  cycle_.run(0);
  executor_.each(0, 0, colours_, [&](Groups groups) {
    executor_.each_row(groups, [&](std::size_t row, std::size_t place) {
      z[row] = scale_ * greatest * static_cast<double>(cycle_.finest().y[place]);
    });
  });
}

}  // namespace flowos::solve
