#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <iterator>
#include <span>
#include <vector>

#include "krylov/solver.h"
#include "matrix/matrix.h"

namespace flowos::solve {

// What a solve asks of the matrix, in fp64. Sizes are times `unit`, so that their squares neither
// overflow nor vanish.
struct Equation {
  std::span<const double> b;
  std::span<double> x;
  double unit = 1;
  double norm = 0;  // ||b||
  // rest = b - A x; answers ||rest||.
  std::function<double(std::span<const double> x, std::span<double> rest)> residual;
};

inline double squared(double value) { return value * value; }

// Of b - A x one row.
template <class Index>
double rest_of(const Csr<Index>& matrix, std::int64_t row, double b, const double* x) {
  for (Index k = matrix.starts[row]; k < matrix.starts[row + 1]; ++k) {
    b -= matrix.values[k] * x[matrix.columns[k]];
  }
  return b;
}

// How far below its greatest the recurrence of an iteration in T is followed until the residual is
// computed anew: by then what rounding did to the greatest shows.
template <class T>
constexpr double kFall = sizeof(T) == sizeof(float) ? 1e-2 : 1e-11;

inline std::int64_t max_iterations(const Goal& goal, std::int64_t rows) {
  return goal.max_iterations > 0 ? goal.max_iterations : std::max<std::int64_t>(1000, 10 * rows);
}

// Conjugate gradients by a Method, which is a class with load, forget, advance, aim and add_to as
// Cholesky and Multigrid have them. What its recurrence says is never believed: when it says that
// the residual is small enough, or has fallen so far that its own rounding shows, x is brought up
// to date and the residual computed anew in fp64, to go on from it (reliable updates: Sleijpen and
// van der Vorst, Computing 56, 1996).
template <class Method>
class Iteration {
 public:
  // fall: of ||r||, until it is computed anew.
  Iteration(Method& method, Equation& equation, double fall, const Goal& goal, const Watch& watch)
      : method_(method),
        equation_(equation),
        fall_(fall),
        wanted_(std::max(goal.rtol * equation.norm, goal.atol * equation.unit)),
        most_(max_iterations(goal, std::ssize(equation.b))),
        watch_(watch),
        rest_(equation.b.size()) {}

  // Goes on from equation.x, and from what info has already.
  void run(Info& info) {
    double size = equation_.residual(equation_.x, rest_);
    if (!std::isfinite(size)) {  // from there nothing can be computed
      std::fill(equation_.x.begin(), equation_.x.end(), 0.0);
      size = equation_.residual(equation_.x, rest_);
    }
    double best = size;
    int stalls = 0;
    info.reason = size <= wanted_ ? Reason::converged : Reason::iterations;
    while (info.reason == Reason::iterations && info.iterations < most_) {
      info.reason = between(info, size);
      size = update(size);
      ++info.fp64_updates;
      if (size <= wanted_) {
        info.reason = Reason::converged;
      } else if (info.reason == Reason::iterations && !(size < kStall * best)) {
        if (++stalls == kMostStalls || !std::isfinite(size)) info.reason = Reason::stagnated;
      }
      best = std::min(best, size);
    }
    const bool ended = info.reason == Reason::iterations || info.reason == Reason::stopped;
    if (ended ? !std::isfinite(size) : !(size <= equation_.norm)) {
      std::fill(equation_.x.begin(), equation_.x.end(), 0.0);  // better than what was made of it
      size = equation_.norm;
    }
    info.residual = info.solved_residual = size / equation_.norm;
  }

 private:
  static constexpr double kStall = 0.5;
  static constexpr int kMostStalls = 3;

  // Brings x up to date: the size of its residual, no more than it was unless what was gone is
  // sound. (In the method's norm x is closer then.)
  double update(double size) {
    if (sound_) {
      method_.add_to(equation_.x);
      return equation_.residual(equation_.x, rest_);
    }
    const std::vector<double> before(equation_.x.begin(), equation_.x.end());
    method_.add_to(equation_.x);
    const double now = equation_.residual(equation_.x, rest_);
    if (now < size) return now;
    std::copy(before.begin(), before.end(), equation_.x.begin());
    left_ = 0;
    return equation_.residual(equation_.x, rest_);
  }

  // From one computed residual, of this size, until the next is due.
  Reason between(Info& info, double size) {
    sound_ = false;
    method_.load(rest_, equation_.unit);
    const double loaded = method_.advance();
    if (!(loaded <= kSame * left_)) method_.forget();
    const double small = kSure * wanted_ / size;
    double greatest = 1;  // share
    double least = 1;     // share, halved each time
    int since = 0;        // so many iterations it was halved
    do {
      if (!method_.aim()) return Reason::indefinite;
      left_ = method_.advance();
      ++info.iterations;
      const double share = std::sqrt(std::max(left_, 0.0) / loaded);
      if (watch_ && !watch_(info.iterations, share * size / equation_.norm)) {
        sound_ = std::isfinite(share);
        return Reason::stopped;
      }
      greatest = std::max(greatest, share);
      const double due = std::max(small, std::min(fall_ * greatest, kStall));
      if (!(share > due)) {
        sound_ = share > 0 && share <= due;  // else it is at its end, or no number
        return Reason::iterations;
      }
      if (share < kStall * least) {
        least = share;
        since = 0;
      } else if (++since == kPatience && fall_ > kRough) {
        return Reason::iterations;
      }
    } while (info.iterations < most_);
    sound_ = std::isfinite(left_);
    return Reason::iterations;
  }

  // Where fp32 is too coarse, its recurrence may never fall: then too the residual is computed.
  static constexpr int kPatience = 200;
  static constexpr double kRough = 1e-6;

  // A recurrence runs in another norm: it is to be a little more sure than it must.
  static constexpr double kSure = 0.9;

  // Of ||r||^2 computed anew over what the recurrence had. Above, rounding made so much of it that
  // the direction does not fit any more.
  static constexpr double kSame = 1.5;

  Method& method_;
  Equation& equation_;
  double fall_, wanted_;
  double left_ = 0;     // ||r||^2 as the recurrence has it; 0: there is none to go on with
  bool sound_ = false;  // the recurrence fell so far as it was due, or was ended from outside
  std::int64_t most_;
  const Watch& watch_;
  std::vector<double> rest_;
};

}  // namespace flowos::solve
