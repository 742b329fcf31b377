#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cholesky_kernels.h"
#include "coarse_level.h"
#include "coarse_line.h"
#include "even_lanes.h"
#include "evenness.h"
#include "matrix.h"
#include "ordering.h"
#include "pivots.h"

namespace flowos::solve {

// Conjugate gradients preconditioned by an incomplete Cholesky factor in block multi-colour order,
// in T. Only the diagonal of the factor differs from the matrix, so that an iteration is two
// sweeps, each over one half of the matrix, and no product with it (Eisenstat's trick). The same
// bits whatever the threads.
template <class T>
class Cholesky {
 public:
  template <class Index>
  Cholesky(const Csr<Index>& matrix, Ordering ordering, const Pivots& pivots,
           const Evenness& evenness, int threads);

  std::int64_t entries() const;
  std::int64_t bytes_per_iteration() const;
  std::int64_t memory_bytes() const;

  // z = M^-1 r, symmetric and positive definite.
  void precondition(std::span<const double> r, std::span<double> z);

  // The iteration goes on from this residual, times `scale`, in the direction that it had; after
  // forget() in a new one.
  void load(std::span<const double> residual, double scale);
  void forget() { aimed_ = 0; }
  // Goes the step that aim() chose; then ||L^-1 r||^2 as the recurrence has it.
  double advance() const { return rr_; }
  // Chooses the next step. False: p'Ap <= 0, the matrix is not positive definite.
  bool aim();
  // x += what was gone since load(), over its scale. Then load() it is.
  void add_to(std::span<double> x);

 private:
  template <class Work>
  void colours(bool forward, int first, const Work& work) const;  // from colour `first` on
  template <class Index>
  void store(const Csr<Index>& matrix, const Pivots& pivots, const Evenness& evenness);
  void begin_vectors(const Pivots& pivots);
  double own_at(const Pivots& pivots, std::int32_t row) const;
  CholeskyVectors<T> vectors();
  LevelView<T> view() const;
  double scale_of(std::size_t row) const { return even_ ? 1 : scale_[row]; }

  Ordering ordering_;
  int threads_;
  bool even_;
  const CholeskyKernels<T>& kernels_;
  // Even matrices are kept as they are, times a power of two, and others scaled to pivots of 1.
  double power_ = 1, diagonal_ = 0;
  EvenLanes<T> lower_, upper_;
  Line<T> inverse_;
  std::vector<double> scale_;  // of each row: over the root of its pivot
  std::unique_ptr<LanesMatrix<T>> matrix_;
  Line<T> middle_;
  Line<T> r_, p_, t_, s_, x_;
  std::vector<double> rr_sums_, pw_sums_, ww_sums_;
  double load_scale_ = 1;
  double alpha_ = 0;  // the step that the next sweep goes
  double rr_ = 0;     // after it
  double aimed_ = 0;  // r'r when a step was last chosen; 0: there is no direction yet
};

}  // namespace flowos::solve
