#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/storage.h"
#include "ic/factor.h"
#include "ic/kernels.h"
#include "ic/pivots.h"
#include "matrix/matrix.h"
#include "matrix/properties.h"
#include "matrix/scaling.h"
#include "ordering/groups.h"
#include "ordering/ordering.h"
#include "simd/lanes_matrix.h"

namespace flowos::solve {

// Conjugate gradients preconditioned by an incomplete Cholesky factor in block multi-colour order,
// in T. Only the diagonal of the factor differs from the matrix, so that an iteration is two
// sweeps, each over one half of the matrix, and no product with it (Eisenstat's trick). The
// executor computes the groups, hands on what others need of them, and adds up their sums: threads
// (threads/thread_executor.h), or ranks (mpi/rank_executor.h). The same bits whatever the executor.
template <class T, class Executor>
class Cholesky {
 public:
  template <class Index>
  Cholesky(const Csr<Index>& matrix, Executor& executor, const Pivots& pivots,
           const Evenness& evenness)
      : executor_(executor),
        factor_(matrix, executor.ordering(), pivots, evenness, executor.threads()),
        rr_sums_(group_count()),
        pw_sums_(group_count()),
        ww_sums_(group_count()) {
    const auto places = static_cast<std::size_t>(executor.ordering().places());
    for (Line<T>* vector : vectors()) {
      vector->resize(places + kLanes<T>);
      std::fill(vector->end() - kLanes<T>, vector->end(), T(0));
    }
    clear();
  }

  std::int64_t entries() const { return factor_.entries(); }
  // That this process moves.
  std::int64_t bytes_per_iteration() const {
    return factor_.bytes_per_iteration(executor_.lines(), executor_.first_lines());
  }
  std::int64_t memory_bytes() const {
    const Ordering& ordering = executor_.ordering();
    const std::size_t order = ordering.place.size() + ordering.row.size();
    return factor_.memory_bytes() +
           static_cast<std::int64_t>(4 * order + 5 * sizeof(T) * ordering.row.size());
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
    forget();
    const LevelView<T> view = factor_.view();
    executor_.backward(r_.data(),
                       [&](Groups groups) { factor_.kernels().backward(view, groups, r_.data()); });
    executor_.each_row([&](std::size_t row, std::size_t place) {
      z[row] = factor_.scale_of(row) * static_cast<double>(r_[place]) / load_scale_;
    });
  }

  // The iteration goes on from this residual, times `scale`, in the direction that it had; after
  // forget() in a new one.
  void load(std::span<const double> residual, double scale) {
    if (spoiled_) clear();
    load_scale_ = scale;
    alpha_ = 0;
    const double factor = scale * factor_.power();
    executor_.each_row([&](std::size_t row, std::size_t place) {
      r_[place] = static_cast<T>(residual[row] * factor * factor_.scale_of(row));
      x_[place] = 0;
    });
    const LevelView<T> view = factor_.view();
    executor_.forward(r_.data(), [&](Groups groups) {
      factor_.kernels().forward(view, groups, r_.data(), rr_sums_.data());
    });
    rr_ = executor_.sums(std::array<const double*, 1>{rr_sums_.data()})[0];
  }
  void forget() { aimed_ = 0; }

  // Goes the step that aim() chose; then ||L^-1 r||^2 as the recurrence has it.
  double advance() const { return rr_; }

  // Chooses the next step. False: p'Ap <= 0, the matrix is not positive definite.
  bool aim() {
    const auto [rr, pw, ww] = products();
    aimed_ = rr;
    alpha_ = 0;
    spoiled_ = !(pw > 0) || !(rr > 0);
    if (spoiled_) return false;
    alpha_ = rr / pw;
    rr_ = std::max(0.0, alpha_ * alpha_ * ww - rr);  // Meurant 1987: without another pass
    return true;
  }

  // x += what was gone since load(), over its scale. Then load() it is.
  void add_to(std::span<double> x) {
    executor_.each_row([&](std::size_t row, std::size_t place) {
      const double gone = static_cast<double>(x_[place]) + alpha_ * static_cast<double>(t_[place]);
      x[row] += factor_.scale_of(row) * gone / load_scale_;
    });
  }

 private:
  // Both sweeps, of which the backward one ends with the colour that the forward one begins with:
  // r'r, p'w and w'w.
  std::array<double, 3> products() {
    const CholeskyKernels<T>& kernels = factor_.kernels();
    const LevelView<T> view = factor_.view();
    const CholeskyVectors<T> v{.middle = factor_.middle(),
                               .r = r_.data(),
                               .p = p_.data(),
                               .t = t_.data(),
                               .s = s_.data(),
                               .x = x_.data(),
                               .diagonal = factor_.diagonal()};
    const T alpha = static_cast<T>(alpha_);
    const T beta = static_cast<T>(aimed_ > 0 ? rr_ / aimed_ : 0);
    double *rr = rr_sums_.data(), *pw = pw_sums_.data(), *ww = ww_sums_.data();
    executor_.back_and_forth(
        t_.data(), s_.data(),
        [&](Groups groups) { kernels.backward_step(view, groups, alpha, beta, v, rr); },
        [&](Groups groups) { kernels.both_steps(view, groups, alpha, beta, v, rr, pw, ww); },
        [&](Groups groups) { kernels.forward_step(view, groups, v, pw, ww); });
    return executor_.sums(std::array<const double*, 3>{rr, pw, ww});
  }

  void clear() {
    spoiled_ = false;
    const std::int64_t size = executor_.ordering().group_places();
    executor_.each_held([&](Groups groups) {
      for (Line<T>* vector : vectors()) {
        std::fill(vector->begin() + groups.first * size, vector->begin() + groups.past * size,
                  T(0));
      }
    });
  }

  std::array<Line<T>*, 5> vectors() { return {&r_, &p_, &t_, &s_, &x_}; }
  std::size_t group_count() const {
    return static_cast<std::size_t>(executor_.ordering().groups());
  }

  Executor& executor_;
  CholeskyFactor<T> factor_;
  Line<T> r_, p_, t_, s_, x_;
  std::vector<double> rr_sums_, pw_sums_, ww_sums_;
  bool spoiled_ = false;  // vectors may hold what is no number
  double load_scale_ = 1;
  double alpha_ = 0;  // the step that the next sweep goes
  double rr_ = 0;     // after it
  double aimed_ = 0;  // r'r when a step was last chosen; 0: there is no direction yet
};

}  // namespace flowos::solve
