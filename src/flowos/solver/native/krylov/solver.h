#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "matrix/matrix.h"

namespace flowos::solve {

enum class Precision {
  automatic,
  fp32,
  fp64
};  // of the preconditioned iteration; answers are fp64
enum class Coarse { automatic, none, aggregates };
enum class Nullspace { none, constant };

// What a person may choose; what they do not is chosen from the matrix.
struct Settings {
  int block_rows = 0;  // 0: chosen
  int colours = 0;     // 0: as few as come
  double relax = -1;   // share of dropped fill that goes to the diagonal, 0..1; negative: chosen
  Precision precision = Precision::automatic;
  Coarse coarse = Coarse::automatic;
  Nullspace nullspace = Nullspace::none;
  int threads = 0;  // 0: those of OpenMP
};

// When to stop: ||b - A x|| <= max(rtol * ||b||, atol), as it is, in fp64, not as the recurrence
// says.
struct Goal {
  double rtol = 1e-7, atol = 0;
  std::int64_t max_iterations = 0;  // 0: ten times the rows, 1000 at least
};

enum class Reason {
  converged,
  iterations,    // max_iterations were done
  indefinite,    // p'Ap <= 0: A is not positive definite
  stagnated,     // the residual falls no more
  stopped,       // `callback` said so
  inconsistent,  // nothing solves it: of b, which does not add up to 0, the mean was taken away
};

struct Info {
  Reason reason = Reason::iterations;
  std::int64_t iterations = 0;
  double residual = 0;         // ||b - A x|| / ||b|| in fp64
  double solved_residual = 0;  // the same of what was solved: of b less its mean, for a nullspace
  Precision precision = Precision::fp64;
  double seconds = 0;
  int fp64_updates = 0;  // how often the true residual was computed
};

// Statistics of the set-up.
struct SetupSummary {
  std::string blocks;  // "tiles 8x8x8", "grown 32"; "points": rows have colours of their own
  int block_rows = 0, colours = 0, levels = 1;
  double relax = 0;
  double shift = 0;  // by how much of the diagonal a pivot was raised, at most
  bool eisenstat = false;
  double fill = 1;  // stored entries over those of the matrix
  // That an iteration must move at least, and that its kernels do, with the zeros that fill lanes.
  std::int64_t bytes_per_iteration = 0, flops_per_iteration = 0;
  std::int64_t memory_bytes = 0;
  double order_seconds = 0, factor_seconds = 0, store_seconds = 0, coarse_seconds = 0;
};

// After each iteration: how many, and the estimated relative residual. False: stop.
using Callback = std::function<bool(std::int64_t iteration, double residual)>;

// Conjugate gradients preconditioned by incomplete Cholesky factors in block multi-colour order, or
// by a multigrid cycle. The matrix must stay where it is. Many right-hand sides one after another;
// not by several threads at once. The same bits whatever the threads, and those of the MPI program.
class Solver {
 public:
  // Throws MatrixError if the matrix cannot be solved with: the row, the reason, the remedy.
  template <class Index>
  Solver(const Csr<Index>& matrix, const Settings& settings);
  ~Solver();
  Solver(Solver&&) noexcept;
  Solver& operator=(Solver&&) noexcept;

  const SetupSummary& setup() const;
  // x: where to begin, and the answer; the last iterate where the iteration was ended, else the
  // best.
  Info solve(std::span<const double> b, std::span<double> x, const Goal& goal,
             const Callback& callback = {});
  // z = M^-1 r, symmetric and positive definite.
  void precondition(std::span<const double> r, std::span<double> z);

 private:
  class Inside;
  std::unique_ptr<Inside> inside_;
};

}  // namespace flowos::solve
