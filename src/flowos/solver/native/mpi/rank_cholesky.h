#pragma once

#include <mpi.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "../cholesky_kernels.h"
#include "../coarse_level.h"
#include "../coarse_line.h"
#include "../pivots.h"
#include "crew.h"
#include "halo.h"
#include "share.h"
#include "sums.h"

namespace flowos::solve {

// What cholesky.h does where each rank has its share: the same two sweeps, in which the lines that
// other ranks wait for are sent while the rest is computed, and one reduction for both. The same
// bits whatever the ranks and threads. A method of iterate.h.
template <class T>
class RankCholesky {
 public:
  RankCholesky(const Share& share, const std::vector<ColourLinks>& links, const Pivots& pivots,
               const Crew& crew, MPI_Comm comm)
      : share_(share),
        comm_(comm),
        crew_(crew),
        halo_(share, links, comm),
        loaded_(crew.threads(), comm),
        products_(crew.threads(), comm),
        kernels_(*all_cholesky_kernels<T>().back()),
        scale_(pivots.values.size()) {
    for (std::size_t row = 0; row < scale_.size(); row++)
      scale_[row] = 1 / std::sqrt(pivots.values[row]);
    if (!share.group.empty())
      matrix_.emplace(share.matrix.view(), share.order, 1.0, crew.threads(), scale_.data());
    sums_.resize(share.group.size());
    more_sums_.resize(share.group.size());
    for (Line<T>* vector : {&middle_, &r_, &p_, &t_, &s_, &x_})
      vector->resize(static_cast<std::size_t>(share.order.places()), T(0));
    fill_middle(pivots);
  }

  // What an iteration must move, of all ranks: 9 vectors are read or written by the backward sweep,
  // 5 by the forward one.
  std::int64_t bytes_per_iteration() const {
    constexpr std::int64_t kVectors = 14;
    std::int64_t mine = matrix_ ? matrix_->lower_bytes() + matrix_->upper_bytes() : 0, all = 0;
    for (std::size_t group = 0; group < share_.group.size(); group++)
      if (share_.is_own(static_cast<std::int64_t>(group)))
        mine += kVectors * share_.group_places() * static_cast<std::int64_t>(sizeof(T));
    MPI_Allreduce(&mine, &all, 1, MPI_INT64_T, MPI_SUM, comm_);
    return all;
  }

  void load(std::span<const double> residual, double scale) {
    load_scale_ = scale;
    alpha_ = 0;
    crew_.each([&](int, std::int64_t group) {
      share_.each_row(group, [&](std::size_t row, std::size_t place) {
        r_[place] = static_cast<T>(residual[row] * scale * scale_[row]);
        x_[place] = 0;
      });
    });
    crew_.forward(halo_, r_.data(), [&](int thread, std::int64_t group) {
      kernels_.forward(view(), {group, group + 1}, r_.data(), sums_.data());
      loaded_.add(thread, 0, sums_[static_cast<std::size_t>(group)]);
    });
    rr_ = loaded_.taken()[0];
    if (!(rr_ < kMostTurn * aimed_)) forget();
  }
  void forget() { aimed_ = 0; }
  double advance() const { return rr_; }

  bool aim() {
    sweep();
    const auto [rr, pw, ww] = products_.taken();
    aimed_ = rr;
    alpha_ = 0;
    if (!(pw > 0) || !(rr > 0)) return false;
    alpha_ = rr / pw;
    rr_ = std::max(0.0, alpha_ * alpha_ * ww - rr);  // Meurant 1987: without another pass
    return true;
  }

  void add_to(std::span<double> x) {
    crew_.each([&](int, std::int64_t group) {
      share_.each_row(group, [&](std::size_t row, std::size_t place) {
        const double gone =
            static_cast<double>(x_[place]) + alpha_ * static_cast<double>(t_[place]);
        x[row] += scale_[row] * gone / load_scale_;
      });
    });
  }

 private:
  static constexpr double kMostTurn = 10;  // beta after a residual was computed anew

  LevelView<T> view() const { return matrix_->view(); }

  void fill_middle(const Pivots& pivots) {
    crew_.each([&](int, std::int64_t group) {
      share_.each_row(group, [&](std::size_t row, std::size_t place) {
        double diagonal = 0;
        const auto end = static_cast<std::size_t>(share_.matrix.starts[row + 1]);
        for (auto at = static_cast<std::size_t>(share_.matrix.starts[row]); at < end; at++)
          if (static_cast<std::size_t>(share_.matrix.columns[at]) == row)
            diagonal += share_.matrix.values[at];
        middle_[place] = static_cast<T>(diagonal / pivots.values[row] - 2);
      });
    });
  }

  void sweep() {
    const CholeskyVectors<T> v{.middle = middle_.data(),
                               .r = r_.data(),
                               .p = p_.data(),
                               .t = t_.data(),
                               .s = s_.data(),
                               .x = x_.data()};
    const T alpha = static_cast<T>(alpha_);
    const T beta = static_cast<T>(aimed_ > 0 ? rr_ / aimed_ : 0);
    crew_.backward(halo_, t_.data(), [&](int thread, std::int64_t group) {
      kernels_.backward_step(view(), {group, group + 1}, alpha, beta, v, sums_.data());
      products_.add(thread, 0, sums_[static_cast<std::size_t>(group)]);
    });
    crew_.forward(halo_, s_.data(), [&](int thread, std::int64_t group) {
      kernels_.forward_step(view(), {group, group + 1}, v, sums_.data(), more_sums_.data());
      products_.add(thread, 1, sums_[static_cast<std::size_t>(group)]);
      products_.add(thread, 2, more_sums_[static_cast<std::size_t>(group)]);
    });
  }

  const Share& share_;
  MPI_Comm comm_;
  const Crew& crew_;
  Halo<T> halo_;
  Sums<1> loaded_;
  Sums<3> products_;
  const CholeskyKernels<T>& kernels_;
  std::vector<double> scale_;             // of each row: over the root of its pivot
  std::optional<LanesMatrix<T>> matrix_;  // none where a rank has no group
  Line<T> middle_, r_, p_, t_, s_, x_;
  std::vector<double> sums_, more_sums_;
  double load_scale_ = 1;
  double alpha_ = 0;  // the step that the next sweep goes
  double rr_ = 0;     // after it
  double aimed_ = 0;  // r'r when a step was last chosen; 0: there is no direction yet
};

}  // namespace flowos::solve
