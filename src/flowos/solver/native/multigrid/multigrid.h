#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "matrix/grid.h"
#include "matrix/matrix.h"
#include "matrix/properties.h"

namespace flowos::solve {

// What a hierarchy was made of.
struct MultigridMade {
  std::string blocks;  // of the finest level: "bricks 8x8x8", "points"
  int block_rows = 0, colours = 0;
  std::vector<std::int64_t> rows;  // of each level
  double fill = 1;                 // stored entries over those of the matrix
  std::int64_t bytes_per_iteration = 0, memory_bytes = 0;
  double order_seconds = 0, store_seconds = 0, coarse_seconds = 0;
};

// Conjugate gradients preconditioned by a V-cycle of aggregation multigrid, in T. A forward
// Gauss-Seidel sweep in block multi-colour order goes before the coarse correction and a backward
// one after it, so that the cycle is symmetric, and memory is gone over as seldom as can be. Which
// correction, and why: docs/adr/0007. The same bits whatever the threads.
template <class T>
class Multigrid {
 public:
  template <class Index>
  Multigrid(const Csr<Index>& matrix, const std::optional<Grid>& grid, const Dominance& dominance,
            int threads);
  ~Multigrid();
  Multigrid(Multigrid&&) noexcept;
  Multigrid& operator=(Multigrid&&) noexcept;

  const MultigridMade& made() const;

  // z = M^-1 r, symmetric and positive definite.
  void precondition(std::span<const double> r, std::span<double> z);

  // The iteration goes on from this residual, times `scale`, in the direction that it had; after
  // forget() in a new one.
  void load(std::span<const double> residual, double scale);
  void forget();
  // Goes the step that aim() chose; then ||r||^2 as the recurrence has it.
  double advance();
  // Chooses the next step. False: p'Ap <= 0, the matrix is not positive definite.
  bool aim();
  // x += what was gone since load(), over its scale.
  void add_to(std::span<double> x);

 private:
  struct Inside;
  std::unique_ptr<Inside> inside_;
};

}  // namespace flowos::solve
