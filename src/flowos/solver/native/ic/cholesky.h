#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/storage.h"
#include "ic/factor.h"
#include "ic/kernels.h"
#include "ic/pivots.h"
#include "ic/sweeps.h"
#include "matrix/matrix.h"
#include "matrix/properties.h"
#include "matrix/scaling.h"
#include "ordering/groups.h"
#include "ordering/ordering.h"
#include "simd/lanes_matrix.h"
#include "threads/executor.h"

namespace flowos::solve {

// An incomplete Cholesky factor M = (I + L)(I + L') in block multi-colour order as the
// Preconditioner of krylov/cg.h, in T. Only the diagonal of the factor differs from the matrix, so
// that an iteration is two sweeps, each over one half of the matrix, and no product with it
// (Eisenstat's trick: SIAM Journal on Scientific and Statistical Computing 2, 1981). It iterates in
// the preconditioned system: r is L^-1 of the residual, z is r, and ||r||^2 is r'z. The same bits
// whichever the executor.
template <class T, Executor E>
class IncompleteCholesky {
 public:
  // ordering: of the rows, whose groups the executor computes.
  template <class Index>
  IncompleteCholesky(const Csr<Index>& matrix, const Ordering& ordering, E& executor,
                     const Pivots& pivots, const Evenness& evenness)
      : ordering_(ordering),
        executor_(executor),
        factor_(matrix, ordering, pivots, evenness, executor.threads()),
        rr_sums_(group_count()),
        pw_sums_(group_count()),
        ww_sums_(group_count()) {
    const auto places = static_cast<std::size_t>(ordering.places());
    for (Line<T>* vector : vectors()) {
      vector->resize(places + kLanes<T>);
      std::fill(vector->end() - kLanes<T>, vector->end(), T(0));
    }
    clear();
  }

  std::int64_t entries() const { return factor_.entries(); }
  // That this process moves.
  std::int64_t bytes_per_iteration() const {
    return factor_.bytes_per_iteration(executor_.lines(0, executor_.colours()),
                                       executor_.lines(0, 1));
  }
  std::int64_t flops_per_iteration() const {
    return factor_.flops_per_iteration(executor_.lines(0, executor_.colours()));
  }
  std::int64_t memory_bytes() const {
    const std::size_t order = ordering_.place.size() + ordering_.row.size();
    return factor_.memory_bytes() +
           static_cast<std::int64_t>(4 * order + 5 * sizeof(T) * ordering_.row.size());
  }

  // z = M^-1 r, symmetric and positive definite.
  void precondition(std::span<const double> r, std::span<double> z) {
    double greatest = 0;
    for (const double value : r) greatest = std::max(greatest, std::fabs(value));
    if (greatest == 0) {
      std::ranges::fill(z, 0.0);
      return;
    }
    load(r, unit_of(greatest));
    const LevelView<T> view = factor_.view();
    backward(executor_, r_.data(),
             [&](Groups groups) { factor_.kernels().backward(view, groups, r_.data()); });
    executor_.each_row(ordering_, [&](std::size_t row, std::size_t place) {
      z[row] = factor_.scale_of(row) * static_cast<double>(r_[place]) / load_scale_;
    });
  }

  // See Preconditioner of krylov/cg.h.
  double load(std::span<const double> residual, double scale) {
    if (spoiled_) clear();
    load_scale_ = scale;
    alpha_ = 0;
    const double factor = scale * factor_.power();
    executor_.each_row(ordering_, [&](std::size_t row, std::size_t place) {
      r_[place] = static_cast<T>(residual[row] * factor * factor_.scale_of(row));
      x_[place] = 0;
    });
    const LevelView<T> view = factor_.view();
    forward(executor_, r_.data(), [&](Groups groups) {
      factor_.kernels().forward(view, groups, r_.data(), rr_sums_.data());
    });
    return rr_ = group_sums(executor_, std::array<const double*, 1>{rr_sums_.data()})[0];
  }

  double apply() const { return rr_; }

  // Both sweeps, with the step that step() chose; the backward one ends with the colour that the
  // forward one begins with. w is the preconditioned matrix times p, so that p'w = p'q.
  std::pair<double, double> direction(double beta) {
    const CholeskyKernels<T>& kernels = factor_.kernels();
    const LevelView<T> view = factor_.view();
    const CholeskyVectors<T> v{.middle = factor_.middle(),
                               .r = r_.data(),
                               .p = p_.data(),
                               .t = t_.data(),
                               .s = s_.data(),
                               .x = x_.data(),
                               .diagonal = factor_.diagonal()};
    const T a = static_cast<T>(alpha_), b = static_cast<T>(beta);
    double *rr = rr_sums_.data(), *pw = pw_sums_.data(), *ww = ww_sums_.data();
    back_and_forth(
        executor_, t_.data(), s_.data(),
        [&](Groups groups) { kernels.backward_step(view, groups, a, b, v, rr); },
        [&](Groups groups) { kernels.both_steps(view, groups, a, b, v, rr, pw, ww); },
        [&](Groups groups) { kernels.forward_step(view, groups, v, pw, ww); });
    const auto [r_r, p_w, w_w] = group_sums(executor_, std::array<const double*, 3>{rr, pw, ww});
    alpha_ = 0;
    rr_ = r_r;
    ww_ = w_w;
    spoiled_ = !(p_w > 0) || !(r_r > 0);
    return {r_r, p_w};
  }

  // r and x are updated in the next direction(). ||r - alpha w||^2 without another pass over
  // memory (Meurant: Parallel Computing 5, 1987).
  double step(double alpha) {
    alpha_ = alpha;
    return rr_ = std::max(0.0, alpha * alpha * ww_ - rr_);
  }

  void add_to(std::span<double> x) {
    executor_.each_row(ordering_, [&](std::size_t row, std::size_t place) {
      const double sum = static_cast<double>(x_[place]) + alpha_ * static_cast<double>(t_[place]);
      x[row] += factor_.scale_of(row) * sum / load_scale_;
    });
  }

 private:
  void clear() {
    spoiled_ = false;
    const std::int64_t size = ordering_.group_places();
    executor_.each_held([&](Groups groups) {
      for (Line<T>* vector : vectors()) {
        std::fill(vector->begin() + groups.first * size, vector->begin() + groups.past * size,
                  T(0));
      }
    });
  }

  std::array<Line<T>*, 5> vectors() { return {&r_, &p_, &t_, &s_, &x_}; }
  std::size_t group_count() const { return static_cast<std::size_t>(ordering_.groups()); }

  const Ordering& ordering_;
  E& executor_;
  CholeskyFactor<T> factor_;
  Line<T> r_, p_, t_, s_, x_;  // see CholeskyVectors
  std::vector<double> rr_sums_, pw_sums_, ww_sums_;
  bool spoiled_ = false;  // vectors may hold NaN
  double load_scale_ = 1;
  double alpha_ = 0;  // of the step that the next sweep takes
  double rr_ = 0;     // after it
  double ww_ = 0;
};

}  // namespace flowos::solve
