#pragma once

#include <algorithm>
#include <array>
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
#include "threads/executor.h"

namespace flowos::solve {

// A V-cycle of aggregation multigrid as the Preconditioner of krylov/cg.h, in T. The sweeps of the
// finest level also update r, p and q, so that memory is read as seldom as possible. Levels:
// ThreadLevels or RankLevels (mpi/); the same bits whichever.
template <class T, class Levels>
class MultigridPreconditioner {
 public:
  MultigridPreconditioner(Hierarchy<T>& hierarchy, Levels& levels)
      : levels_(levels),
        scale_(hierarchy.scale()),
        cycle_(hierarchy, levels),
        group_places_(hierarchy.ordering.group_places()),
        sums_(at(hierarchy.ordering.groups())) {
    for (Line<T>* vector : {&x_, &p_, &q_, &u_}) {
      if (vector == &u_ && cycle_.finest().even()) continue;
      vector->resize(at(hierarchy.ordering.places()));
    }
  }

  // z = M^-1 r, symmetric and positive definite.
  void precondition(std::span<const double> r, std::span<double> z);

  // See Preconditioner of krylov/cg.h.
  double load(std::span<const double> residual, double scale) {
    load_vectors(residual, scale);
    return step(0);
  }
  double apply();
  std::pair<double, double> direction(double beta);
  double step(double alpha);
  void add_to(std::span<double> x);

  // Besides the hierarchy.
  std::int64_t memory_bytes() const {
    std::size_t values = 0;
    for (const Line<T>* vector : {&x_, &p_, &q_, &u_}) values += vector->size();
    return static_cast<std::int64_t>(values * sizeof(T));
  }

 private:
  void load_vectors(std::span<const double> residual, double scale);

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

  double sum() { return group_sums(levels_.of(0), std::array<const double*, 1>{sums_.data()})[0]; }

  Levels& levels_;
  double scale_;  // of the matrix
  Cycle<T, Levels> cycle_;
  std::int64_t group_places_;

  Line<T> x_, p_, q_, u_;     // see GradientVectors
  bool spoiled_ = true;       // they may hold NaN
  std::vector<double> sums_;  // of each group
  double load_scale_ = 1;
  double alpha_ = 0;  // of the step that r has taken, but x not yet
  double rz_ = 0;
};

template <class T, class Levels>
void MultigridPreconditioner<T, Levels>::load_vectors(std::span<const double> residual,
                                                      double scale) {
  Line<T>& r = cycle_.finest().r;
  load_scale_ = scale;
  alpha_ = 0;
  levels_.of(0).each([&](Groups groups) {
    clear(r, groups);
    clear(x_, groups);
    for (Line<T>* vector : {&p_, &q_, &u_}) {
      if (spoiled_ && !vector->empty()) clear(*vector, groups);
    }
    levels_.each_row(groups, [&](std::size_t row, std::size_t place) {
      r[place] = static_cast<T>(residual[row] * scale);
    });
  });
  spoiled_ = false;
}

// All of the cycle but the last sweep, which direction() does; r'z is known before it.
template <class T, class Levels>
double MultigridPreconditioner<T, Levels>::apply() {
  cycle_.correct(0);
  return rz_ = cycle_.reduction();
}

// The backward sweep ends with the first colour, whose rows depend on rows of their own block only:
// their new direction follows at once.
template <class T, class Levels>
std::pair<double, double> MultigridPreconditioner<T, Levels>::direction(double beta) {
  Level<T>& level = cycle_.finest();
  const CoarseKernels<T>& kernels = cycle_.kernels_of(level);
  const LevelView<T> view = level.view();
  const GradientVectors<T> v = vectors();
  const T alpha = static_cast<T>(alpha_), beta_in_t = static_cast<T>(beta);
  const T* c = cycle_.correction(0);
  const auto direct = [&](Groups groups) {
    kernels.direction(view, groups, alpha, beta_in_t, v, sums_.data());
  };
  cycle_.sweep_up(0, [&](int colour, Groups groups) {
    if (colour > 0) return kernels.backward_keep(view, groups, c, v);
    for (std::int64_t g = groups.past - 1; g >= groups.first; --g) {
      kernels.backward_keep(view, {g, g + 1}, c, v);
      direct({g, g + 1});
    }
  });
  levels_.of(0).each(1, levels_.of(0).colours(), direct);
  alpha_ = 0;
  const double pq = sum();
  spoiled_ = !(pq > 0);
  return {rz_, pq};
}

// r is updated in the first sweep of the next cycle, x and p in direction().
template <class T, class Levels>
double MultigridPreconditioner<T, Levels>::step(double alpha) {
  Level<T>& level = cycle_.finest();
  const CoarseKernels<T>& kernels = cycle_.kernels_of(level);
  const LevelView<T> view = level.view();
  const GradientVectors<T> v = vectors();
  const T alpha_in_t = static_cast<T>(alpha);
  cycle_.sweep_down(0, [&](Groups groups) {
    kernels.forward_update(view, groups, alpha_in_t, v, sums_.data(), level.sums.data());
  });
  alpha_ = alpha;
  return sum();
}

// The solution of (scale_ A) x = load_scale_ r is load_scale_ / scale_ times that of A x = r.
template <class T, class Levels>
void MultigridPreconditioner<T, Levels>::add_to(std::span<double> x) {
  const double back = scale_ / load_scale_, alpha = alpha_;
  levels_.of(0).each([&](Groups groups) {
    levels_.each_row(groups, [&](std::size_t row, std::size_t place) {
      x[row] += back * (static_cast<double>(x_[place]) + alpha * static_cast<double>(p_[place]));
      x_[place] = 0;
    });
  });
  alpha_ = 0;
}

template <class T, class Levels>
void MultigridPreconditioner<T, Levels>::precondition(std::span<const double> r,
                                                      std::span<double> z) {
  double greatest = 0;
  for (const double value : r) greatest = std::max(greatest, std::fabs(value));
  if (greatest == 0) {
    std::ranges::fill(z, 0.0);
    return;
  }
  load_vectors(r, 1 / greatest);
  cycle_.run(0);
  levels_.of(0).each([&](Groups groups) {
    levels_.each_row(groups, [&](std::size_t row, std::size_t place) {
      z[row] = scale_ * greatest * static_cast<double>(cycle_.finest().y[place]);
    });
  });
}

}  // namespace flowos::solve
