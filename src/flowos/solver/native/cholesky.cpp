#include "cholesky.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "cholesky_kernels.h"
#include "coarse_level.h"
#include "coarse_line.h"
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

// Of all groups, in their order.
double total(const std::vector<double>& sums) {
  double sum = 0;
  for (const double of_group : sums) sum += of_group;
  return sum;
}

template <class Index>
double diagonal_of(const Csr<Index>& matrix, std::int64_t row) {
  double sum = 0;
  for (Index k = matrix.starts[row]; k < matrix.starts[row + 1]; ++k) {
    if (matrix.columns[k] == row) sum += matrix.values[k];
  }
  return sum;
}

}  // namespace

template <class T>
template <class Index>
Cholesky<T>::Cholesky(const Csr<Index>& matrix, Ordering ordering, const Pivots& pivots,
                      int threads)
    : ordering_(std::move(ordering)),
      threads_(threads),
      kernels_(*all_cholesky_kernels<T>().back()),
      scale_(roots_over(pivots.values, threads)),
      matrix_(matrix, ordering_, 1, threads, scale_.data()),
      sums_(at(ordering_.groups())),
      more_sums_(at(ordering_.groups())) {
  for (Line<T>* vector : {&middle_, &r_, &p_, &t_, &s_, &x_})
    vector->resize(at(ordering_.places()));
  share_out(0, ordering_.places(), 1, threads_, [&](Groups some) {
    for (std::int64_t place = some.first; place < some.past; ++place) {
      const std::int32_t row = ordering_.row[at(place)];
      const double middle = row < 0 ? 0 : diagonal_of(matrix, row) / pivots.values[at(row)] - 2;
      middle_[at(place)] = static_cast<T>(middle);
      for (Line<T>* vector : {&r_, &p_, &t_, &s_, &x_}) (*vector)[at(place)] = 0;
    }
  });
}

// 9 vectors are read or written by the backward sweep, 5 by the forward one.
template <class T>
std::int64_t Cholesky<T>::bytes_per_iteration() const {
  constexpr std::int64_t kVectors = 14;
  return matrix_.lower_bytes() + matrix_.upper_bytes() +
         kVectors * ordering_.places() * static_cast<std::int64_t>(sizeof(T));
}

template <class T>
std::int64_t Cholesky<T>::memory_bytes() const {
  constexpr std::int64_t kVectors = 6;
  const std::int64_t order = 4 * (ordering_.rows + ordering_.places());
  return matrix_.lower_bytes() + matrix_.upper_bytes() + order + 8 * ordering_.rows +
         kVectors * ordering_.places() * static_cast<std::int64_t>(sizeof(T));
}

template <class T>
template <class Work>
void Cholesky<T>::colours(bool forward, const Work& work) const {
  const std::int64_t count = ordering_.colours();
  for (std::int64_t i = 0; i < count; ++i) {
    const std::size_t colour = at(forward ? i : count - 1 - i);
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
          .x = x_.data()};
}

template <class T>
void Cholesky<T>::load(std::span<const double> residual, double scale) {
  load_scale_ = scale;
  alpha_ = 0;
  share_out(0, ordering_.places(), 1, threads_, [&](Groups some) {
    for (std::int64_t place = some.first; place < some.past; ++place) {
      const std::int32_t row = ordering_.row[at(place)];
      r_[at(place)] = row < 0 ? T(0) : static_cast<T>(residual[at(row)] * scale * scale_[at(row)]);
      x_[at(place)] = 0;
    }
  });
  const LevelView<T> view = matrix_.view();
  colours(true, [&](Groups groups) { kernels_.forward(view, groups, r_.data(), sums_.data()); });
  rr_ = total(sums_);
  if (!(rr_ < kMostTurn * aimed_)) forget();
}

template <class T>
bool Cholesky<T>::aim() {
  const LevelView<T> view = matrix_.view();
  const CholeskyVectors<T> v = vectors();
  const T alpha = static_cast<T>(alpha_);
  const T beta = static_cast<T>(aimed_ > 0 ? rr_ / aimed_ : 0);
  colours(false, [&](Groups groups) {
    kernels_.backward_step(view, groups, alpha, beta, v, sums_.data());
  });
  aimed_ = total(sums_);
  colours(true, [&](Groups groups) {
    kernels_.forward_step(view, groups, v, sums_.data(), more_sums_.data());
  });
  const double pw = total(sums_), ww = total(more_sums_);
  alpha_ = 0;
  if (!(pw > 0) || !(aimed_ > 0)) return false;
  alpha_ = aimed_ / pw;
  rr_ = std::max(0.0, alpha_ * alpha_ * ww - aimed_);  // Meurant 1987: without another pass
  return true;
}

template <class T>
void Cholesky<T>::add_to(std::span<double> x) {
  share_out(0, ordering_.rows, 1, threads_, [&](Groups rows) {
    for (std::int64_t row = rows.first; row < rows.past; ++row) {
      const std::size_t place = at(ordering_.place[at(row)]);
      const double gone = static_cast<double>(x_[place]) + alpha_ * static_cast<double>(t_[place]);
      x[at(row)] += scale_[at(row)] * gone / load_scale_;
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
  const LevelView<T> view = matrix_.view();
  colours(false, [&](Groups groups) { kernels_.backward(view, groups, r_.data()); });
  for (std::size_t row = 0; row < z.size(); ++row) {
    z[row] = greatest * scale_[row] * static_cast<double>(r_[at(ordering_.place[row])]);
  }
}

template class Cholesky<float>;
template class Cholesky<double>;
#define FLOWOS_FOR(T, Index) \
  template Cholesky<T>::Cholesky(const Csr<Index>&, Ordering, const Pivots&, int);
FLOWOS_FOR(float, std::int32_t)
FLOWOS_FOR(float, std::int64_t)
FLOWOS_FOR(double, std::int32_t)
FLOWOS_FOR(double, std::int64_t)
#undef FLOWOS_FOR

}  // namespace flowos::solve
