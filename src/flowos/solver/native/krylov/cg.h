#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "krylov/solver.h"
#include "matrix/matrix.h"

namespace flowos::solve {

// A matrix A with a preconditioner M, symmetric and positive definite, and the vectors of conjugate
// gradients. Each line of the iteration is one call, so that a preconditioner may do it in the same
// pass over memory as its own sweeps; its norm ||r|| may be any that it has at hand. Models:
// IncompleteCholesky (ic/), MultigridPreconditioner (multigrid/).
template <class M>
concept Preconditioner =
    requires(M& m, std::span<const double> residual, std::span<double> x, double scalar) {
      // r = scale * residual, x = 0; returns ||r||^2
      { m.load(residual, scalar) } -> std::same_as<double>;
      // z = M^-1 r; returns r'z
      { m.apply() } -> std::same_as<double>;
      // p = z + beta p, q = A p; returns r'z, which may be closer now, and p'q
      { m.direction(scalar) } -> std::same_as<std::pair<double, double>>;
      // x += alpha p, r -= alpha q; returns ||r||^2
      { m.step(scalar) } -> std::same_as<double>;
      // x_out += x / scale; x = 0
      { m.add_to(x) };
    };

// The preconditioned conjugate gradient method (Hestenes and Stiefel: Journal of Research of the
// National Bureau of Standards 49, 1952; Saad: Iterative Methods for Sparse Linear Systems,
// algorithm 9.1).
template <Preconditioner M>
class ConjugateGradients {
 public:
  explicit ConjugateGradients(M& m) : m_(m) {}

  // Continues from this residual, times `scale`, in the direction of the last iteration unless
  // rounding has changed ||r|| so much that the direction no longer fits. Returns ||r||^2.
  double load(std::span<const double> residual, double scale) {
    const double rr = m_.load(residual, scale);
    if (!(rr <= kSame * rr_)) rz_ = 0;
    return rr_ = rr;
  }

  // The next load() starts with the direction of steepest descent.
  void restart() { rr_ = 0; }

  // One iteration. False: p'Ap <= 0, so that A or M is not positive definite.
  bool iterate() {
    const double rz_new = m_.apply();
    if (!(rz_new > 0)) return false;
    const double beta = rz_ > 0 ? rz_new / rz_ : 0;
    const auto [rz, pq] = m_.direction(beta);
    if (!(rz > 0) || !(pq > 0)) return false;
    const double alpha = rz / pq;
    rr_ = m_.step(alpha);
    rz_ = rz;
    return true;
  }

  double rr() const { return rr_; }  // ||r||^2 by the recurrence

 private:
  // Of ||r||^2 computed anew over that of the recurrence.
  static constexpr double kSame = 1.5;

  M& m_;
  double rz_ = 0;  // r'z of the last iteration; 0: there is no direction
  double rr_ = 0;
};

// The linear system in fp64. Norms are times `unit`, so that their squares neither overflow nor
// underflow.
struct Equation {
  std::span<const double> b;
  std::span<double> x;
  double unit = 1;
  double norm = 0;  // ||b||
  // r = b - A x; returns ||r||.
  std::function<double(std::span<const double> x, std::span<double> r)> residual;

  double tolerance(const Goal& goal) const { return std::max(goal.rtol * norm, goal.atol * unit); }
};

inline double squared(double value) { return value * value; }

// One row of b - A x.
template <class Index>
double residual_of_row(const Csr<Index>& matrix, std::int64_t row, double b, const double* x) {
  for (Index k = matrix.starts[row]; k < matrix.starts[row + 1]; ++k) {
    b -= matrix.values[k] * x[matrix.columns[k]];
  }
  return b;
}

// The same of a matrix in arrays that their owner may change meanwhile, where there were so many
// entries. NaN: there is no such row now.
template <class Index>
double residual_of_lent_row(const Csr<Index>& matrix, Index entries, std::int64_t row, double b,
                            const double* x) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  const Index start = matrix.starts[row], past = matrix.starts[row + 1];
  if (start < 0 || past > entries) return kNone;
  for (Index k = start; k < past; ++k) {
    const auto column = static_cast<std::uint64_t>(matrix.columns[k]);
    if (column >= static_cast<std::uint64_t>(matrix.rows)) return kNone;
    b -= matrix.values[k] * x[column];
  }
  return b;
}

// The reduction of ||r|| after which rounding shows in a recurrence in T, and the residual is
// computed anew.
template <class T>
constexpr double kReduction = sizeof(T) == sizeof(float) ? 1e-2 : 1e-11;

inline std::int64_t max_iterations(const Goal& goal, std::int64_t rows) {
  return goal.max_iterations > 0 ? goal.max_iterations : std::max<std::int64_t>(1000, 10 * rows);
}

// Conjugate gradients in the precision of the preconditioner, to the accuracy of fp64. The residual
// of the recurrence is never trusted: when it is below the tolerance, or has fallen so far that
// rounding shows, x is updated and the residual computed anew in fp64 (reliable updates: Sleijpen
// and van der Vorst, Computing 56, 1996).
template <Preconditioner M>
class ReliableUpdates {
 public:
  // reduction: of ||r||, between two updates.
  ReliableUpdates(M& m, Equation& equation, double reduction, const Goal& goal,
                  const Callback& callback)
      : m_(m),
        cg_(m),
        equation_(equation),
        reduction_(reduction),
        tolerance_(equation.tolerance(goal)),
        max_iterations_(max_iterations(goal, std::ssize(equation.b))),
        callback_(callback),
        r_(equation.b.size()) {}

  // Continues from equation.x and the counts of info.
  void run(Info& info) {
    double norm = equation_.residual(equation_.x, r_);
    if (!std::isfinite(norm)) norm = start_from_zero();
    double best = norm;
    int stalls = 0;
    info.reason = norm <= tolerance_ ? Reason::converged : Reason::iterations;
    while (info.reason == Reason::iterations && info.iterations < max_iterations_) {
      info.reason = iterate(info, norm);
      norm = update(norm);
      ++info.fp64_updates;
      if (norm <= tolerance_) {
        info.reason = Reason::converged;
      } else if (info.reason == Reason::iterations && !(norm < kStall * best)) {
        if (++stalls == kMaxStalls || !std::isfinite(norm)) info.reason = Reason::stagnated;
      }
      best = std::min(best, norm);
    }
    const bool ended = info.reason == Reason::iterations || info.reason == Reason::stopped;
    if (ended ? !std::isfinite(norm) : !(norm <= equation_.norm)) {
      std::fill(equation_.x.begin(), equation_.x.end(), 0.0);  // better than the last iterate
      norm = equation_.norm;
    }
    info.residual = info.solved_residual = norm / equation_.norm;
  }

 private:
  static constexpr double kStall = 0.5;
  static constexpr int kMaxStalls = 3;

  double start_from_zero() {
    std::fill(equation_.x.begin(), equation_.x.end(), 0.0);
    return equation_.residual(equation_.x, r_);
  }

  // Updates x and r_; returns ||r||. Where the recurrence broke down, an update that does not
  // reduce the norm is undone. (One that did not may increase it: it reduces another norm.)
  double update(double norm) {
    if (sound_) {
      m_.add_to(equation_.x);
      return equation_.residual(equation_.x, r_);
    }
    const std::vector<double> before(equation_.x.begin(), equation_.x.end());
    m_.add_to(equation_.x);
    const double updated = equation_.residual(equation_.x, r_);
    if (updated < norm) return updated;
    std::copy(before.begin(), before.end(), equation_.x.begin());
    cg_.restart();
    return equation_.residual(equation_.x, r_);
  }

  // Iterates from the residual r_, of this norm, until the next update is due.
  Reason iterate(Info& info, double norm) {
    sound_ = false;
    const double loaded = cg_.load(r_, equation_.unit);
    const double converged = kSafety * tolerance_ / norm;
    double greatest = 1;  // share of ||r||
    double least = 1;     // halved each time
    int since = 0;        // iterations since it was halved
    do {
      if (!cg_.iterate()) return Reason::indefinite;
      ++info.iterations;
      const double share = std::sqrt(std::max(cg_.rr(), 0.0) / loaded);
      if (callback_ && !callback_(info.iterations, share * norm / equation_.norm)) {
        sound_ = std::isfinite(share);
        return Reason::stopped;
      }
      greatest = std::max(greatest, share);
      const double due = std::max(converged, std::min(reduction_ * greatest, kStall));
      if (!(share > due)) {
        sound_ = share > 0 && share <= due;  // 0: underflow; else NaN
        return Reason::iterations;
      }
      if (share < kStall * least) {
        least = share;
        since = 0;
      } else if (++since == kPatience && reduction_ > kCoarse) {
        return Reason::iterations;
      }
    } while (info.iterations < max_iterations_);
    sound_ = std::isfinite(cg_.rr());
    return Reason::iterations;
  }

  // Where the precision is too coarse, the recurrence may never fall: it is updated all the same.
  static constexpr int kPatience = 200;
  static constexpr double kCoarse = 1e-6;

  // The recurrence runs in another norm than the tolerance.
  static constexpr double kSafety = 0.9;

  M& m_;
  ConjugateGradients<M> cg_;
  Equation& equation_;
  double reduction_, tolerance_;
  bool sound_ = false;  // the recurrence fell as far as it was due, or was stopped by the callback
  std::int64_t max_iterations_;
  const Callback& callback_;
  std::vector<double> r_;
};

}  // namespace flowos::solve
