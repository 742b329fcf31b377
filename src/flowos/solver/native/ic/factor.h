#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/storage.h"
#include "ic/kernels.h"
#include "ic/pivots.h"
#include "matrix/matrix.h"
#include "matrix/properties.h"
#include "ordering/ordering.h"
#include "simd/even_lanes.h"
#include "simd/lanes_matrix.h"

namespace flowos::solve {

// What iterations read of an incomplete Cholesky factor: its pivots and the matrix, in the lanes of
// an ordering. Even matrices are stored as they are, times a power of two, and others scaled to
// pivots of 1.
template <class T>
class CholeskyFactor {
 public:
  template <class Index>
  CholeskyFactor(const Csr<Index>& matrix, const Ordering& ordering, const Pivots& pivots,
                 const Evenness& evenness, int threads);

  // The fastest of this machine.
  const CholeskyKernels<T>& kernels() const { return kernels_; }
  LevelView<T> view() const;
  const T* middle() const { return middle_.data(); }
  T diagonal() const { return static_cast<T>(diagonal_); }

  // What a residual is multiplied by, and x too but for power().
  double scale_of(std::size_t row) const { return even_ ? 1 : scale_[row]; }
  double power() const { return power_; }

  std::int64_t entries() const;  // that are stored, with those that are 0
  // That an iteration moves, its vectors included, over so many lines (steps of a group), of which
  // so many are of the first colour.
  std::int64_t bytes_per_iteration(std::int64_t lines, std::int64_t of_first) const;
  // That an iteration does: 2 for each stored entry, and what its sweeps do at each place.
  std::int64_t flops_per_iteration(std::int64_t lines) const;
  std::int64_t memory_bytes() const;

 private:
  template <class Index>
  void store(const Csr<Index>& matrix, const Ordering& ordering, const Pivots& pivots,
             const Evenness& evenness, int threads);
  std::int64_t matrix_bytes() const;

  int steps_;
  bool even_;
  const CholeskyKernels<T>& kernels_;
  double power_ = 1, diagonal_ = 0;
  EvenMatrix<T> even_matrix_;
  Raw<double> scale_;                       // of each row: over the root of its pivot
  std::unique_ptr<LanesMatrix<T>> matrix_;  // none where it is even, or where there is no group
  Line<T> middle_, inverse_;
};

}  // namespace flowos::solve
