// Incomplete factors of matrices whose rows are diagonally dominant, and of those whose rows are
// not.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "check.h"
#include "krylov/cg.h"
#include "krylov/solver.h"
#include "systems.h"

using namespace flowos::solve;

namespace {

Settings without_levels(double relax = -1, Precision precision = Precision::fp64) {
  Settings settings;
  settings.relax = relax;
  settings.precision = precision;
  settings.coarse = Coarse::none;
  return settings;
}

Vector product(const Matrix& matrix, const Vector& x) {
  Vector result(x.size());
  for (std::size_t row = 0; row < x.size(); ++row) {
    result[row] = -residual_of_row(matrix.view(), static_cast<std::int64_t>(row), 0, x.data());
  }
  return result;
}

double size(const Vector& x) {
  double sum = 0;
  for (const double value : x) sum += value * value;
  return std::sqrt(sum);
}

void what_finite_elements_give_is_solved_with() {
  Draws draws(2);
  for (const double tie : {0.5, 0.9, 0.99}) {
    const Matrix matrix = elements(700, 10, tie);
    const Vector b = draws.some(matrix.starts.size() - 1);
    for (const Precision precision : {Precision::automatic, Precision::fp64}) {
      for (const double relax : {-1.0, 0.95}) {
        Vector x(b.size());
        Solver solver(matrix.view(), without_levels(relax, precision));
        CHECK(solver.setup().shift > 0);
        CHECK(solver.solve(b, x, {}).reason == Reason::converged);
        Vector rest = product(matrix, x);
        for (std::size_t row = 0; row < b.size(); ++row) rest[row] -= b[row];
        CHECK(size(rest) <= 1e-7 * 1.0001 * size(b));
      }
    }
  }
}

void pivots_of_dominant_rows_are_not_raised() {
  for (const double decades : {0.0, 6.0}) {
    for (const double relax : {-1.0, 0.0, 0.95}) {
      const Matrix matrix = cells_of({{16, 16, 16}}, {1, 1, 1}, true, decades);
      CHECK(Solver(matrix.view(), without_levels(relax)).setup().shift == 0);
    }
  }
}

// By the power method, of M^-1 A.
double greatest_eigenvalue(const Matrix& matrix) {
  constexpr int kSteps = 200;
  Solver solver(matrix.view(), without_levels());
  Vector x = Draws(8).some(matrix.starts.size() - 1);
  double found = 0;
  for (int step = 0; step < kSteps; ++step) {
    solver.precondition(product(matrix, x), x);
    found = size(x);
    for (double& value : x) value /= found;
  }
  return found;
}

void eigenvalues_are_bounded_where_rows_are_not_dominant() {
  CHECK(greatest_eigenvalue(elements(300, 10, 0.5)) <= 4.0 / 3 * (1 + 1e-9));
  CHECK(greatest_eigenvalue(elements(300, 20, 0.5)) <= 4.0 / 3 * (1 + 1e-9));
}

}  // namespace

int main() {
  what_finite_elements_give_is_solved_with();
  pivots_of_dominant_rows_are_not_raised();
  eigenvalues_are_bounded_where_rows_are_not_dominant();
}
