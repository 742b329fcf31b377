#include "ic/factor.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/at_once.h"
#include "base/for_each.h"
#include "base/storage.h"
#include "ic/kernels.h"
#include "ic/pivots.h"
#include "matrix/matrix.h"
#include "matrix/properties.h"
#include "ordering/ordering.h"
#include "simd/even_lanes.h"
#include "simd/lanes_matrix.h"

namespace flowos::solve {
namespace {

// work(i) for each i < count, each thread a share that it also reads later.
template <class Work>
void for_each(std::size_t count, int threads, const Work& work) {
  const std::size_t parts = at(threads);
  at_once(threads, [&](int part) {
    const std::size_t past = count * (at(part) + 1) / parts;
    for (std::size_t i = count * at(part) / parts; i < past; ++i) work(i);
  });
}

}  // namespace

template <class T>
template <class Index>
CholeskyFactor<T>::CholeskyFactor(const Csr<Index>& matrix, const Ordering& ordering,
                                  const Pivots& pivots, const Evenness& evenness, int threads)
    : steps_(ordering.block_rows),
      even_(evenness.is_even()),
      kernels_(even_ ? *all_cholesky_kernels<T>().back()->even
                     : *all_cholesky_kernels<T>().back()) {
  if (ordering.groups() > 0) store(matrix, ordering, pivots, evenness, threads);
  Line<T>& own = even_ ? inverse_ : middle_;
  own.resize(at(ordering.places()));
  for_each(own.size(), threads, [&](std::size_t place) {
    own[place] = static_cast<T>(even_ ? 1 / (pivots.values[place] * power_) : pivots.middle[place]);
  });
}

template <class T>
template <class Index>
void CholeskyFactor<T>::store(const Csr<Index>& matrix, const Ordering& ordering,
                              const Pivots& pivots, const Evenness& evenness, int threads) {
  if (even_) {
    power_ = std::ldexp(1.0, -std::ilogb(evenness.max_diagonal));
    diagonal_ = evenness.max_diagonal * power_;
    even_matrix_ = even_matrix<T>(matrix, ordering, power_, threads);
  } else {
    scale_.resize(ordering.place.size());
    for_each(scale_.size(), threads, [&](std::size_t row) {
      scale_[row] = 1 / std::sqrt(pivots.values[at(ordering.place[row])]);
    });
    matrix_ = std::make_unique<LanesMatrix<T>>(matrix, ordering, 1, threads, Held{}, scale_.data());
  }
}

template <class T>
LevelView<T> CholeskyFactor<T>::view() const {
  if (matrix_) return matrix_->view();
  return {.steps = steps_,
          .lower = even_matrix_.lower.groups(),
          .upper = even_matrix_.upper.groups(),
          .inverse = inverse_.data()};
}

template <class T>
std::int64_t CholeskyFactor<T>::entries() const {
  return matrix_ ? matrix_->entries() : even_matrix_.lower.entries() + even_matrix_.upper.entries();
}

template <class T>
std::int64_t CholeskyFactor<T>::matrix_bytes() const {
  return matrix_ ? matrix_->lower_bytes() + matrix_->upper_bytes()
                 : even_matrix_.lower.bytes() + even_matrix_.upper.bytes();
}

// 9 vectors are read or written by the backward sweep, 5 by the forward one, of which those of the
// first colour still have p and t in the cache. Even matrices have their pivots read by both.
template <class T>
std::int64_t CholeskyFactor<T>::bytes_per_iteration(std::int64_t lines,
                                                    std::int64_t of_first) const {
  constexpr std::int64_t kLine = kLanes<T> * static_cast<std::int64_t>(sizeof(T));
  const std::int64_t moved = even_ ? 15 * lines - 3 * of_first : 14 * lines - 2 * of_first;
  return moved * kLine + matrix_bytes();
}

// As kernels_body.h does them: r 3, p 2, x 2, r'r 2; s 2, w 1, p'w 2, w'w 2. Even matrices have 6
// more by their pivots.
template <class T>
std::int64_t CholeskyFactor<T>::flops_per_iteration(std::int64_t lines) const {
  return (even_ ? 22 : 16) * lines * kLanes<T> + 2 * entries();
}

template <class T>
std::int64_t CholeskyFactor<T>::memory_bytes() const {
  return matrix_bytes() + static_cast<std::int64_t>(8 * scale_.size() +
                                                    sizeof(T) * (middle_.size() + inverse_.size()));
}

template class CholeskyFactor<float>;
template class CholeskyFactor<double>;
#define FLOWOS_FOR(T, Index)                                                                    \
  template CholeskyFactor<T>::CholeskyFactor(const Csr<Index>&, const Ordering&, const Pivots&, \
                                             const Evenness&, int);
FLOWOS_FOR(float, std::int32_t)
FLOWOS_FOR(float, std::int64_t)
FLOWOS_FOR(double, std::int32_t)
FLOWOS_FOR(double, std::int64_t)
#undef FLOWOS_FOR

}  // namespace flowos::solve
