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
#include "../even_lanes.h"
#include "../evenness.h"
#include "../matrix.h"
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
  // evenness: of the whole matrix.
  RankCholesky(const Share& share, const std::vector<ColourLinks>& links, const Pivots& pivots,
               const Evenness& evenness, const Crew& crew, MPI_Comm comm)
      : share_(share),
        comm_(comm),
        crew_(crew),
        halo_(share, links, comm),
        loaded_(crew.threads(), comm),
        products_(crew.threads(), comm),
        even_(evenness.is_even() && pivots.shift == 0),
        kernels_(even_ ? *all_cholesky_kernels<T>().back()->even
                       : *all_cholesky_kernels<T>().back()),
        rr_sums_(share.group.size()),
        pw_sums_(share.group.size()),
        ww_sums_(share.group.size()) {
    const auto places = static_cast<std::size_t>(share.order.places());
    for (Line<T>* vector : {&r_, &p_, &t_, &s_, &x_}) vector->resize(places + kLanes<T>, T(0));
    if (even_) {
      power_ = std::ldexp(1.0, -std::ilogb(evenness.greatest));
      diagonal_ = evenness.greatest * power_;
    } else {
      scale_.resize(pivots.values.size());
      for (std::size_t row = 0; row < scale_.size(); row++)
        scale_[row] = 1 / std::sqrt(pivots.values[row]);
    }
    if (!share.group.empty()) store(pivots);
  }

  // What an iteration must move, of all ranks: 9 vectors are read or written by the backward sweep,
  // 5 by the forward one, of which those of the first colour still have p and t in the cache. Even
  // matrices have their pivots read by both.
  std::int64_t bytes_per_iteration() const {
    std::int64_t lines = 0, first = 0, all = 0;
    for (std::size_t group = 0; group < share_.group.size(); group++) {
      if (!share_.is_own(static_cast<std::int64_t>(group))) continue;
      lines += share_.order.block_rows;
      if (static_cast<std::int64_t>(group) < share_.order.colour_starts[1])
        first += share_.order.block_rows;
    }
    const std::int64_t line = share_.order.lanes * static_cast<std::int64_t>(sizeof(T));
    const std::int64_t mine =
        even_ ? (15 * lines - 3 * first) * line + lower_.bytes() + upper_.bytes()
              : (14 * lines - 2 * first) * line +
                    (matrix_ ? matrix_->lower_bytes() + matrix_->upper_bytes() : 0);
    MPI_Allreduce(&mine, &all, 1, MPI_INT64_T, MPI_SUM, comm_);
    return all;
  }

  void load(std::span<const double> residual, double scale) {
    load_scale_ = scale;
    alpha_ = 0;
    crew_.each([&](int, std::int64_t group) {
      share_.each_row(group, [&](std::size_t row, std::size_t place) {
        r_[place] = static_cast<T>(residual[row] * scale * power_ * scale_of(row));
        x_[place] = 0;
      });
    });
    crew_.forward(halo_, r_.data(), [&](int thread, std::int64_t group) {
      kernels_.forward(view(), {group, group + 1}, r_.data(), rr_sums_.data());
      loaded_.add(thread, 0, rr_sums_[static_cast<std::size_t>(group)]);
    });
    rr_ = loaded_.taken()[0];
    if (!(rr_ < kMostTurn * aimed_)) forget();
  }
  void forget() { aimed_ = 0; }
  double advance() const { return rr_; }

  bool aim() {
    const auto [rr, pw, ww] = products();
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
        x[row] += scale_of(row) * gone / load_scale_;
      });
    });
  }

 private:
  static constexpr double kMostTurn = 10;  // beta after a residual was computed anew

  double scale_of(std::size_t row) const { return even_ ? 1 : scale_[row]; }

  LevelView<T> view() const {
    if (!even_) return matrix_.value().view();
    return {.steps = share_.order.block_rows,
            .lower = lower_.groups(),
            .upper = upper_.groups(),
            .inverse = inverse_.data()};
  }

  // Even matrices as they are, times a power of two, and others scaled to pivots of 1.
  void store(const Pivots& pivots) {
    const Csr<std::int32_t> matrix = share_.matrix.view();
    const auto groups = static_cast<std::int64_t>(share_.group.size());
    const int steps = share_.order.block_rows, threads = crew_.threads();
    if (even_) {
      const LanesMatrix<T> lanes(matrix, share_.order, power_, threads);
      lower_ = EvenLanes<T>(lanes.view().lower, groups, steps, false, threads);
      upper_ = EvenLanes<T>(lanes.view().upper, groups, steps, true, threads);
    } else {
      matrix_.emplace(matrix, share_.order, 1.0, threads, scale_.data());
    }
    Line<T>& own = even_ ? inverse_ : middle_;
    own.resize(static_cast<std::size_t>(share_.order.places()), T(even_ ? 1 : 0));
    for (std::size_t row = 0; row < share_.row.size(); row++)
      own[static_cast<std::size_t>(share_.order.place[row])] =
          static_cast<T>(even_ ? 1 / (pivots.values[row] * power_) : pivots.middle[row]);
  }

  // Both sweeps; r'r, p'w and w'w.
  std::array<double, 3> products() {
    const CholeskyVectors<T> v{.middle = middle_.data(),
                               .r = r_.data(),
                               .p = p_.data(),
                               .t = t_.data(),
                               .s = s_.data(),
                               .x = x_.data(),
                               .diagonal = static_cast<T>(diagonal_)};
    const T alpha = static_cast<T>(alpha_);
    const T beta = static_cast<T>(aimed_ > 0 ? rr_ / aimed_ : 0);
    double *rr = rr_sums_.data(), *pw = pw_sums_.data(), *ww = ww_sums_.data();
    crew_.back_and_forth(
        halo_, t_.data(), s_.data(),
        [&](int thread, std::int64_t group) {
          kernels_.backward_step(view(), {group, group + 1}, alpha, beta, v, rr);
          products_.add(thread, 0, rr[group]);
        },
        [&](int thread, std::int64_t group) {
          kernels_.both_steps(view(), {group, group + 1}, alpha, beta, v, rr, pw, ww);
          products_.add(thread, 0, rr[group]);
          products_.add(thread, 1, pw[group]);
          products_.add(thread, 2, ww[group]);
        },
        [&](int thread, std::int64_t group) {
          kernels_.forward_step(view(), {group, group + 1}, v, pw, ww);
          products_.add(thread, 1, pw[group]);
          products_.add(thread, 2, ww[group]);
        });
    return products_.taken();
  }

  const Share& share_;
  MPI_Comm comm_;
  const Crew& crew_;
  Halo<T> halo_;
  Sums<1> loaded_;
  Sums<3> products_;
  bool even_;
  const CholeskyKernels<T>& kernels_;
  double power_ = 1, diagonal_ = 0;
  EvenLanes<T> lower_, upper_;
  std::vector<double> scale_;             // of each row: over the root of its pivot
  std::optional<LanesMatrix<T>> matrix_;  // none where a rank has no group
  Line<T> inverse_, middle_, r_, p_, t_, s_, x_;
  std::vector<double> rr_sums_, pw_sums_, ww_sums_;
  double load_scale_ = 1;
  double alpha_ = 0;  // the step that the next sweep goes
  double rr_ = 0;     // after it
  double aimed_ = 0;  // r'r when a step was last chosen; 0: there is no direction yet
};

}  // namespace flowos::solve
