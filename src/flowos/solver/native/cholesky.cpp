#include "cholesky.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "cholesky_kernels.h"
#include "coarse_kernels.h"
#include "coarse_level.h"
#include "coarse_line.h"
#include "even_lanes.h"
#include "evenness.h"
#include "matrix.h"
#include "ordering.h"
#include "ordering_parts.h"
#include "pivots.h"
#include "team.h"

namespace flowos::solve {
namespace {

constexpr double kMostTurn = 10;  // beta after a residual was computed anew; above: a new direction

std::vector<double> roots_over(const std::vector<double>& pivots, int threads) {
  std::vector<double> result(pivots.size());
  share_out(0, static_cast<std::int64_t>(pivots.size()), 1, threads, [&](Groups some) {
    for (std::int64_t i = some.first; i < some.past; ++i) {
      result[at(i)] = 1 / std::sqrt(pivots[at(i)]);
    }
  });
  return result;
}

}  // namespace

template <class T>
template <class Index>
Cholesky<T>::Cholesky(const Csr<Index>& matrix, Ordering ordering, const Pivots& pivots,
                      const Evenness& evenness, int threads)
    : ordering_(std::move(ordering)),
      threads_(threads),
      even_(evenness.is_even() && pivots.shift == 0),
      kernels_(even_ ? *all_cholesky_kernels<T>().back()->even : *all_cholesky_kernels<T>().back()),
      rr_sums_(at(ordering_.groups())),
      pw_sums_(at(ordering_.groups())),
      ww_sums_(at(ordering_.groups())) {
  store(matrix, pivots, evenness);
  begin_vectors(pivots);
}

template <class T>
template <class Index>
void Cholesky<T>::store(const Csr<Index>& matrix, const Pivots& pivots, const Evenness& evenness) {
  if (even_) {
    power_ = std::ldexp(1.0, -std::ilogb(evenness.greatest));
    diagonal_ = evenness.greatest * power_;
    const LanesMatrix<T> lanes(matrix, ordering_, power_, threads_);
    const std::int64_t groups = ordering_.groups();
    lower_ = EvenLanes<T>(lanes.view().lower, groups, ordering_.block_rows, false, threads_);
    upper_ = EvenLanes<T>(lanes.view().upper, groups, ordering_.block_rows, true, threads_);
  } else {
    scale_ = roots_over(pivots.values, threads_);
    matrix_ = std::make_unique<LanesMatrix<T>>(matrix, ordering_, 1, threads_, scale_.data());
  }
}

// What is kept of the diagonal; of padding what leaves zeros zeros.
template <class T>
double Cholesky<T>::own_at(const Pivots& pivots, std::int32_t row) const {
  if (row < 0) return even_ ? 1 : 0;
  return even_ ? 1 / (pivots.values[at(row)] * power_) : pivots.middle[at(row)];
}

template <class T>
void Cholesky<T>::begin_vectors(const Pivots& pivots) {
  constexpr std::size_t kZeros = kLanes<T>;
  const std::size_t places = at(ordering_.places());
  Line<T>& own = even_ ? inverse_ : middle_;
  own.resize(places);
  for (Line<T>* vector : {&r_, &p_, &t_, &s_, &x_}) vector->resize(places + kZeros);
  share_out(0, ordering_.places(), 1, threads_, [&](Groups some) {
    for (std::int64_t place = some.first; place < some.past; ++place) {
      own[at(place)] = static_cast<T>(own_at(pivots, ordering_.row[at(place)]));
      for (Line<T>* vector : {&r_, &p_, &t_, &s_, &x_}) (*vector)[at(place)] = 0;
    }
  });
  for (Line<T>* vector : {&r_, &p_, &t_, &s_, &x_}) {
    std::fill(vector->end() - kZeros, vector->end(), T(0));
  }
}

template <class T>
std::int64_t Cholesky<T>::entries() const {
  return even_ ? lower_.entries() + upper_.entries() : matrix_->entries();
}

// 9 vectors are read or written by the backward sweep, 5 by the forward one, of which those of the
// first colour still have p and t in the cache. Even matrices have their pivots read by both.
template <class T>
std::int64_t Cholesky<T>::bytes_per_iteration() const {
  const std::int64_t line = ordering_.lanes * static_cast<std::int64_t>(sizeof(T));
  const std::int64_t lines = ordering_.groups() * ordering_.block_rows;
  const std::int64_t first = ordering_.colour_starts[1] * ordering_.block_rows;
  if (even_) return (15 * lines - 3 * first) * line + lower_.bytes() + upper_.bytes();
  return (14 * lines - 2 * first) * line + matrix_->lower_bytes() + matrix_->upper_bytes();
}

template <class T>
std::int64_t Cholesky<T>::memory_bytes() const {
  constexpr std::int64_t kVectors = 6;
  const std::int64_t order = 4 * (ordering_.rows + ordering_.places());
  const std::int64_t vectors = kVectors * ordering_.places() * static_cast<std::int64_t>(sizeof(T));
  if (even_) return lower_.bytes() + upper_.bytes() + order + vectors;
  return matrix_->lower_bytes() + matrix_->upper_bytes() + order + 8 * ordering_.rows + vectors;
}

template <class T>
template <class Work>
void Cholesky<T>::colours(bool forward, int first, const Work& work) const {
  const int count = ordering_.colours() - first;
  for (int i = 0; i < count; ++i) {
    const std::size_t colour = at(first + (forward ? i : count - 1 - i));
    share_out(ordering_.colour_starts[colour], ordering_.colour_starts[colour + 1],
              ordering_.block_rows, threads_, work);
  }
}

template <class T>
CholeskyVectors<T> Cholesky<T>::vectors() {
  return {.middle = middle_.data(),
          .r = r_.data(),
          .p = p_.data(),
          .t = t_.data(),
          .s = s_.data(),
          .x = x_.data(),
          .diagonal = static_cast<T>(diagonal_)};
}

template <class T>
LevelView<T> Cholesky<T>::view() const {
  if (!even_) return matrix_->view();
  return {.steps = ordering_.block_rows,
          .lower = lower_.groups(),
          .upper = upper_.groups(),
          .inverse = inverse_.data()};
}

template <class T>
void Cholesky<T>::load(std::span<const double> residual, double scale) {
  load_scale_ = scale;
  alpha_ = 0;
  const double factor = scale * power_;
  share_out(0, ordering_.places(), 1, threads_, [&](Groups some) {
    for (std::int64_t place = some.first; place < some.past; ++place) {
      const std::int32_t row = ordering_.row[at(place)];
      r_[at(place)] =
          row < 0 ? T(0) : static_cast<T>(residual[at(row)] * factor * scale_of(at(row)));
      x_[at(place)] = 0;
    }
  });
  const LevelView<T> view = this->view();
  colours(true, 0,
          [&](Groups groups) { kernels_.forward(view, groups, r_.data(), rr_sums_.data()); });
  rr_ = sum_in_order(rr_sums_);
  if (!(rr_ < kMostTurn * aimed_)) forget();
}

// The backward sweep ends with the first colour, and the forward one begins with it.
template <class T>
bool Cholesky<T>::aim() {
  const LevelView<T> view = this->view();
  const CholeskyVectors<T> v = vectors();
  const T alpha = static_cast<T>(alpha_);
  const T beta = static_cast<T>(aimed_ > 0 ? rr_ / aimed_ : 0);
  double *rr = rr_sums_.data(), *pw = pw_sums_.data(), *ww = ww_sums_.data();
  colours(false, 1,
          [&](Groups groups) { kernels_.backward_step(view, groups, alpha, beta, v, rr); });
  share_out(0, ordering_.colour_starts[1], ordering_.block_rows, threads_,
            [&](Groups groups) { kernels_.both_steps(view, groups, alpha, beta, v, rr, pw, ww); });
  colours(true, 1, [&](Groups groups) { kernels_.forward_step(view, groups, v, pw, ww); });
  aimed_ = sum_in_order(rr_sums_);
  const double all_pw = sum_in_order(pw_sums_), all_ww = sum_in_order(ww_sums_);
  alpha_ = 0;
  if (!(all_pw > 0) || !(aimed_ > 0)) return false;
  alpha_ = aimed_ / all_pw;
  rr_ = std::max(0.0, alpha_ * alpha_ * all_ww - aimed_);  // Meurant 1987: without another pass
  return true;
}

template <class T>
void Cholesky<T>::add_to(std::span<double> x) {
  share_out(0, ordering_.rows, 1, threads_, [&](Groups rows) {
    for (std::int64_t row = rows.first; row < rows.past; ++row) {
      const std::size_t place = at(ordering_.place[at(row)]);
      const double gone = static_cast<double>(x_[place]) + alpha_ * static_cast<double>(t_[place]);
      x[at(row)] += scale_of(at(row)) * gone / load_scale_;
    }
  });
}

template <class T>
void Cholesky<T>::precondition(std::span<const double> r, std::span<double> z) {
  double greatest = 0;
  for (const double value : r) greatest = std::max(greatest, std::fabs(value));
  if (greatest == 0) {
    std::ranges::fill(z, 0.0);
    return;
  }
  load(r, 1 / greatest);
  forget();
  const LevelView<T> view = this->view();
  colours(false, 0, [&](Groups groups) { kernels_.backward(view, groups, r_.data()); });
  for (std::size_t row = 0; row < z.size(); ++row) {
    z[row] = greatest * scale_of(row) * static_cast<double>(r_[at(ordering_.place[row])]);
  }
}

template class Cholesky<float>;
template class Cholesky<double>;
#define FLOWOS_FOR(T, Index) \
  template Cholesky<T>::Cholesky(const Csr<Index>&, Ordering, const Pivots&, const Evenness&, int);
FLOWOS_FOR(float, std::int32_t)
FLOWOS_FOR(float, std::int64_t)
FLOWOS_FOR(double, std::int32_t)
FLOWOS_FOR(double, std::int64_t)
#undef FLOWOS_FOR

}  // namespace flowos::solve
