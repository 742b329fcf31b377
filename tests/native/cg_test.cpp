// The conjugate gradients of krylov/cg.h with preconditioners as a textbook has them.

#include "krylov/cg.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "check.h"
#include "krylov/solver.h"
#include "systems.h"

using flowos::solve::ConjugateGradients;
using flowos::solve::Equation;
using flowos::solve::Goal;
using flowos::solve::Info;
using flowos::solve::Preconditioner;
using flowos::solve::Reason;
using flowos::solve::ReliableUpdates;
using flowos::solve::residual_of_row;

namespace {

struct Identity {
  void apply(const Vector& r, Vector& z) const { z = r; }
};

struct Jacobi {
  Vector diagonal;

  explicit Jacobi(const Matrix& a) : diagonal(a.starts.size() - 1) {
    for (std::size_t row = 0; row < diagonal.size(); ++row) {
      for (std::int32_t k = a.starts[row]; k < a.starts[row + 1]; ++k) {
        if (at(a.columns[at(k)]) == row) diagonal[row] = a.values[at(k)];
      }
    }
  }
  void apply(const Vector& r, Vector& z) const {
    for (std::size_t i = 0; i < r.size(); ++i) z[i] = r[i] / diagonal[i];
  }
};

double dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// Each line of the iteration in a pass of its own, with any M that has apply(r, z).
template <class M>
class Unfused {
 public:
  Unfused(const Matrix& a, M m)
      : a_(a), m_(std::move(m)), r_(a.starts.size() - 1), z_(r_), p_(r_), q_(r_), x_(r_) {}

  double load(std::span<const double> residual, double scale) {
    scale_ = scale;
    for (std::size_t i = 0; i < r_.size(); ++i) r_[i] = scale * residual[i];
    x_.assign(x_.size(), 0);
    return dot(r_, r_);
  }
  double apply() {
    m_.apply(r_, z_);
    return dot(r_, z_);
  }
  std::pair<double, double> direction(double beta) {
    for (std::size_t i = 0; i < p_.size(); ++i) p_[i] = z_[i] + beta * p_[i];
    for (std::size_t i = 0; i < q_.size(); ++i) {
      q_[i] = -residual_of_row(a_.view(), static_cast<std::int64_t>(i), 0, p_.data());
    }
    return {dot(r_, z_), dot(p_, q_)};
  }
  double step(double alpha) {
    for (std::size_t i = 0; i < x_.size(); ++i) x_[i] += alpha * p_[i];
    for (std::size_t i = 0; i < r_.size(); ++i) r_[i] -= alpha * q_[i];
    return dot(r_, r_);
  }
  void add_to(std::span<double> x) {
    for (std::size_t i = 0; i < x_.size(); ++i) x[i] += x_[i] / scale_;
    x_.assign(x_.size(), 0);
  }

 private:
  const Matrix& a_;
  M m_;
  Vector r_, z_, p_, q_, x_;
  double scale_ = 1;
};
static_assert(Preconditioner<Unfused<Jacobi>>);

template <class M>
Info solved(const Matrix& a, const Vector& b, Vector& x, const M& m, const Goal& goal = {}) {
  Unfused<M> unfused(a, m);
  Equation equation{.b = b,
                    .x = x,
                    .norm = std::sqrt(dot(b, b)),
                    .residual = [&](std::span<const double> now, std::span<double> r) {
                      double sum = 0;
                      for (std::size_t i = 0; i < r.size(); ++i) {
                        const auto row = static_cast<std::int64_t>(i);
                        r[i] = residual_of_row(a.view(), row, b[i], now.data());
                        sum += r[i] * r[i];
                      }
                      return std::sqrt(sum);
                    }};
  Info info;
  ReliableUpdates(unfused, equation, 1e-11, goal, {}).run(info);
  return info;
}

// Of A, or of M^-1 A.
void it_ends_after_as_many_iterations_as_there_are_eigenvalues() {
  constexpr std::size_t kRows = 12;
  Matrix a;
  Rows rows(a);
  for (std::size_t row = 0; row < kRows; ++row) {
    rows.add(static_cast<std::int64_t>(row), static_cast<double>(row % 4 + 1));
    rows.end();
  }
  const Vector b(kRows, 1.0);
  for (const bool jacobi : {false, true}) {
    Vector x(kRows);
    const Info info = jacobi ? solved(a, b, x, Jacobi(a), {.rtol = 1e-12})
                             : solved(a, b, x, Identity(), {.rtol = 1e-12});
    CHECK(info.reason == Reason::converged);
    CHECK(info.iterations == (jacobi ? 1 : 4));
    for (std::size_t row = 0; row < kRows; ++row) {
      CHECK(std::fabs(x[row] * static_cast<double>(row % 4 + 1) - 1) < 1e-12);
    }
  }
}

void a_preconditioner_saves_iterations() {
  const Matrix a = cells_of({{12, 12, 12}}, {1, 1, 1}, true, 4);
  const Vector b = Draws(3).some(a.starts.size() - 1);
  Vector x(b.size()), y(b.size());
  const Info plain = solved(a, b, x, Identity(), {.rtol = 1e-8});
  const Info jacobi = solved(a, b, y, Jacobi(a), {.rtol = 1e-8});
  CHECK(plain.reason == Reason::converged && jacobi.reason == Reason::converged);
  CHECK(jacobi.residual <= 1e-8 && plain.residual <= 1e-8);
  CHECK(2 * jacobi.iterations < plain.iterations);
}

void what_is_not_positive_definite_is_found_out() {
  Matrix a = poisson(5);
  for (double& value : a.values) value = -value;
  const Vector b = Draws(4).some(a.starts.size() - 1);
  Vector x(b.size());
  CHECK(solved(a, b, x, Identity()).reason == Reason::indefinite);
}

// Of a residual that was not that of the recurrence the direction is thrown away.
void a_residual_from_elsewhere_starts_again() {
  const Matrix a = poisson(6);
  const Vector b = Draws(5).some(a.starts.size() - 1);
  Unfused<Identity> one(a, {}), other(a, {});
  ConjugateGradients first(one), second(other);
  first.load(b, 1);
  for (int i = 0; i < 5; ++i) CHECK(first.iterate());
  first.load(b, 1);
  second.load(b, 1);
  CHECK(first.iterate() && second.iterate());
  CHECK(first.rr() == second.rr());
}

}  // namespace

int main() {
  it_ends_after_as_many_iterations_as_there_are_eigenvalues();
  a_preconditioner_saves_iterations();
  what_is_not_positive_definite_is_found_out();
  a_residual_from_elsewhere_starts_again();
}
