// The solver as a whole: how many iterations it takes, that x is the same whatever the threads and
// the lanes, and what it does with matrices that it cannot solve with.

#include "krylov/solver.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "check.h"
#include "matrix/error.h"
#include "matrix/generate.h"
#include "matrix/matrix.h"
#include "systems.h"

using namespace flowos::solve;

namespace {

struct Solved {
  std::vector<double> x;
  Info info;
  SetupSummary setup;
};

Solved solved(const Matrix& matrix, const std::vector<double>& b, const Settings& settings,
              const Goal& goal = {}) {
  Solver solver(matrix.view(), settings);
  Solved result{.x = std::vector<double>(b.size(), 0.0), .info = {}, .setup = solver.setup()};
  result.info = solver.solve(b, result.x, goal);
  return result;
}

std::vector<double> ones(const Matrix& matrix) {
  return std::vector<double>(matrix.starts.size() - 1, 1.0);
}

double residual(const Matrix& matrix, const std::vector<double>& b, const std::vector<double>& x) {
  double sum = 0, all = 0;
  for (std::size_t row = 0; row < b.size(); ++row) {
    double rest = b[row];
    for (auto k = static_cast<std::size_t>(matrix.starts[row]);
         k < static_cast<std::size_t>(matrix.starts[row + 1]); ++k) {
      rest -= matrix.values[k] * x[static_cast<std::size_t>(matrix.columns[k])];
    }
    sum += rest * rest;
    all += b[row] * b[row];
  }
  return std::sqrt(sum / all);
}

Settings plain(int block_rows, double relax, Precision precision) {
  Settings settings;
  settings.block_rows = block_rows;
  settings.relax = relax;
  settings.precision = precision;
  settings.coarse = Coarse::none;
  return settings;
}

// A grid of cells each of which has a conductivity over so many decades.
Matrix rough(std::int64_t side, double decades, std::uint64_t seed) {
  Matrix matrix = poisson({.cells = {side, side, side}});
  Draws draws(seed);
  std::vector<double> cell(matrix.starts.size() - 1);
  for (double& value : cell) value = std::pow(10.0, decades * (draws.next() - 0.5));
  for (std::size_t row = 0; row < cell.size(); ++row) {
    double sum = 0;
    std::size_t diagonal = 0;
    for (auto k = static_cast<std::size_t>(matrix.starts[row]);
         k < static_cast<std::size_t>(matrix.starts[row + 1]); ++k) {
      const auto column = static_cast<std::size_t>(matrix.columns[k]);
      if (column == row) {
        diagonal = k;
        continue;
      }
      matrix.values[k] = -2 / (1 / cell[row] + 1 / cell[column]);
      sum -= matrix.values[k];
    }
    const auto missing = 7 - (matrix.starts[row + 1] - matrix.starts[row]);
    matrix.values[diagonal] = sum + missing * cell[row];
  }
  return matrix;
}

void check_solves(const Matrix& matrix, const Settings& settings) {
  const std::vector<double> b = ones(matrix);
  const Solved answer = solved(matrix, b, settings);
  CHECK(answer.info.reason == Reason::converged);
  CHECK(residual(matrix, b, answer.x) <= 1e-7 * 1.0001);
  CHECK(std::fabs(residual(matrix, b, answer.x) - answer.info.residual) < 1e-10);
}

// What other implementations need in this order of rows (solver.h names it); 57 in natural order.
[[maybe_unused]] void iterations_are_those_of_the_ordering() {
  const Matrix matrix = poisson({.cells = {64, 64, 64}});
  const auto iterations = [&](int block_rows, double relax) {
    return solved(matrix, ones(matrix), plain(block_rows, relax, Precision::fp64)).info.iterations;
  };
  CHECK(std::abs(iterations(32, 0) - 69) <= 1);
  CHECK(iterations(512, 0) < iterations(32, 0));
  CHECK(iterations(512, 0.95) < iterations(512, 0));
}

// Held in one corner only, so that x is a million times b.
Matrix pinned(std::int64_t side) {
  Matrix matrix = cells_of({{1, side, side}}, {1, 1, 1}, false);
  for (std::int32_t k = 0; k < matrix.starts[1]; ++k) {
    if (matrix.columns[at(k)] == 0) matrix.values[at(k)] += 1;
  }
  return matrix;
}

// What rounding did to the greatest residual must not make up the directions that come after.
[[maybe_unused]] void a_residual_that_grows_before_it_falls_costs_fp32_few_iterations() {
  const Matrix matrix = pinned(128);
  const auto iterations = [&](Precision precision) {
    Settings settings = plain(0, -1, precision);
    settings.coarse = Coarse::aggregates;
    return solved(matrix, ones(matrix), settings).info.iterations;
  };
  CHECK(iterations(Precision::fp32) <= iterations(Precision::fp64) + 5);
}

// The residual of x may be larger than that of nothing where that of the method fell.
[[maybe_unused]] void fp32_goes_on_where_the_residual_grew() {
  const Matrix matrix = flowos::solve::power_grid(300, 5);
  const Solved answer = solved(matrix, ones(matrix), plain(0, -1, Precision::fp32));
  CHECK(answer.info.reason == Reason::converged);
}

// Of one block the factor is that of the natural order.
void one_block_is_the_natural_order() {
  const Matrix matrix = poisson({.cells = {1, 1, 500}});
  Settings settings = plain(512, 0, Precision::fp64);
  settings.colours = 3;  // no tiles
  const Solved answer = solved(matrix, ones(matrix), settings);
  CHECK(answer.info.iterations <= 2);  // the factor of a tridiagonal matrix is exact
}

void threads_do_not_show() {
  for (const Matrix& matrix :
       {poisson({.cells = {24, 20, 28}}), rough(20, 3, 1), elements(700, 10, 0.9)}) {
    for (const Precision precision : {Precision::fp32, Precision::fp64}) {
      for (const Coarse coarse : {Coarse::none, Coarse::aggregates}) {
        Settings settings = plain(0, -1, precision);
        settings.coarse = coarse;
        settings.threads = 1;
        const Solved alone = solved(matrix, ones(matrix), settings);
        for (settings.threads = kUnderTsan ? 4 : 2; settings.threads <= 4; ++settings.threads) {
          const Solved other = solved(matrix, ones(matrix), settings);
          CHECK(other.x == alone.x);
          CHECK(other.info.iterations == alone.info.iterations);
        }
      }
    }
  }
}

void jumps_of_coefficients_are_solved_with() {
  for (const double decades : {2.0, 10.0}) {
    if (kUnderTsan && decades > 2) break;  // threads do the same
    const Matrix matrix = rough(20, decades, 2);
    for (const Precision precision : {Precision::automatic, Precision::fp64}) {
      check_solves(matrix, plain(0, -1, precision));
      Settings settings = plain(0, -1, precision);
      settings.colours = 3;
      check_solves(matrix, settings);
    }
  }
}

// u = sin(pi x) sin(2 pi y) sin(pi z) in the unit cube.
double error_of_manufactured(std::int64_t cells) {
  const Matrix matrix = poisson({.cells = {cells, cells, cells}});
  const double h = 1 / static_cast<double>(cells + 1), pi = std::numbers::pi;
  const auto u = [&](std::size_t row) {
    const auto n = static_cast<std::size_t>(cells);
    const auto at = [&](std::size_t i) { return static_cast<double>(i + 1) * h; };
    return std::sin(pi * at(row % n)) * std::sin(2 * pi * at(row / n % n)) *
           std::sin(pi * at(row / n / n));
  };
  std::vector<double> b = ones(matrix);
  for (std::size_t row = 0; row < b.size(); ++row) b[row] = 6 * pi * pi * u(row) * h * h;
  const Solved answer = solved(matrix, b, {}, {.rtol = 1e-10});
  CHECK(answer.info.reason == Reason::converged);
  double most = 0;
  for (std::size_t row = 0; row < b.size(); ++row) {
    most = std::max(most, std::fabs(answer.x[row] - u(row)));
  }
  return most;
}

void the_error_is_of_second_order() {
  const double ratio = error_of_manufactured(15) / error_of_manufactured(31);
  CHECK(ratio > 3.8);
  CHECK(ratio < 4.2);
}

void goes_on_from_where_x_is() {
  const Matrix matrix = poisson({.cells = {20, 20, 20}});
  const std::vector<double> b = ones(matrix);
  Solved answer = solved(matrix, b, {});
  Solver solver(matrix.view(), {});
  CHECK(solver.solve(b, answer.x, {}).iterations == 0);
  const Info again = solver.solve(b, answer.x, {.rtol = 1e-12});
  CHECK(again.reason == Reason::converged);
  CHECK(again.residual <= 1e-12);
}

void preconditioning_is_symmetric() {
  const Matrix matrix = rough(12, 2, 3);
  for (const Coarse coarse : {Coarse::none, Coarse::aggregates}) {
    Settings settings = plain(0, -1, Precision::fp64);
    settings.coarse = coarse;
    Solver solver(matrix.view(), settings);
    Draws draws(4);
    std::vector<double> a = ones(matrix), b = a, za = a, zb = a;
    for (double& value : a) value = draws.next() - 0.5;
    for (double& value : b) value = draws.next() - 0.5;
    solver.precondition(a, za);
    solver.precondition(b, zb);
    double ab = 0, ba = 0, aa = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      ab += a[i] * zb[i];
      ba += b[i] * za[i];
      aa += a[i] * za[i];
    }
    CHECK(aa > 0);
    CHECK(std::fabs(ab - ba) <= 1e-12 * aa);
  }
}

void no_right_hand_side_has_no_solution_but_zero() {
  const Matrix matrix = poisson({.cells = {5, 5, 5}});
  std::vector<double> b(125, 0.0), x(125, 3.0);
  const Info info = Solver(matrix.view(), {}).solve(b, x, {});
  CHECK(info.reason == Reason::converged);
  CHECK(info.iterations == 0);
  CHECK(x == b);
}

// Neither overflows nor vanishes what is squared.
void however_large_the_right_hand_side_is_x_is_as_many_times_as_large() {
  const Matrix matrix = rough(12, 2, 8);
  for (const Coarse coarse : {Coarse::none, Coarse::aggregates}) {
    Settings settings;
    settings.coarse = coarse;
    const Solved answer = solved(matrix, ones(matrix), settings);
    for (const int exponent : {-900, -600, 600, 900}) {
      const Solved scaled =
          solved(matrix, std::vector<double>(answer.x.size(), std::ldexp(1.0, exponent)), settings);
      CHECK(scaled.info.iterations == answer.info.iterations);
      for (std::size_t row = 0; row < answer.x.size(); ++row) {
        CHECK(scaled.x[row] == std::ldexp(answer.x[row], exponent));
      }
    }
  }
}

// In fp32 the second row alone is too large a residual.
void the_next_right_hand_side_does_not_suffer_from_one_that_failed() {
  const Matrix matrix{.starts = {0, 1, 2}, .columns = {0, 1}, .values = {1, 1e-90}};
  Settings settings;
  settings.precision = Precision::fp32;
  Solver solver(matrix.view(), settings);
  std::vector<double> x(2, 0.0);
  CHECK(solver.solve(std::vector<double>{1, 1}, x, {}).reason != Reason::converged);
  x = {0, 0};
  CHECK(solver.solve(std::vector<double>{1, 0}, x, {}).reason == Reason::converged);
  CHECK(x == (std::vector<double>{1, 0}));
}

void what_ends_an_iteration_is_told() {
  const Matrix matrix = rough(20, 6, 5);
  const std::vector<double> b = ones(matrix);
  CHECK(solved(matrix, b, {}, {.max_iterations = 3}).info.iterations == 3);
  CHECK(solved(matrix, b, {}, {.max_iterations = 3}).info.reason == Reason::iterations);
  CHECK(solved(matrix, b, {}, {.rtol = 1e-30}).info.reason == Reason::stagnated);
  std::vector<double> x(b.size(), 0.0);
  const Info info =
      Solver(matrix.view(), {}).solve(b, x, {}, [](std::int64_t i, double) { return i < 2; });
  CHECK(info.reason == Reason::stopped);
  CHECK(info.iterations == 2);
}

// A ring is singular: its values add up to what they were.
void a_constant_nullspace_is_taken_out() {
  constexpr std::int32_t kRows = 50;
  Matrix matrix;
  matrix.starts.push_back(0);
  for (std::int32_t row = 0; row < kRows; ++row) {
    matrix.columns.insert(matrix.columns.end(),
                          {(row + kRows - 1) % kRows, row, (row + 1) % kRows});
    matrix.values.insert(matrix.values.end(), {-1.0, 2.0, -1.0});
    matrix.starts.push_back(3 * (row + 1));
  }
  std::vector<double> b(kRows);
  Draws draws(6);
  for (double& value : b) value = draws.next();
  Settings settings;
  settings.nullspace = Nullspace::constant;
  const Solved answer = solved(matrix, b, settings);
  CHECK(answer.info.reason == Reason::inconsistent);  // as b does not add up to 0
  CHECK(answer.info.solved_residual <= 1e-7);
  double sum = 0;
  for (const double value : answer.x) sum += value;
  CHECK(std::fabs(sum) < 1e-6);
}

Matrix of_two(double a, double b, double c, double d) {
  return {.starts = {0, 2, 4}, .columns = {0, 1, 0, 1}, .values = {a, b, c, d}};
}

void refused(const Matrix& matrix, const std::string& because) {
  try {
    Solver(matrix.view(), {});
  } catch (const MatrixError& error) {
    CHECK(std::string(error.what()).find(because) != std::string::npos);
    return;
  }
  CHECK(false);
}

void an_indefinite_matrix_is_told_by_the_direction_it_shows_in() {
  CHECK(solved(of_two(1, 2, 2, 1), {1, -1}, {}).info.reason == Reason::indefinite);
  const Matrix matrix{.starts = {0, 3, 6, 9},
                      .columns = {0, 1, 2, 0, 1, 2, 0, 1, 2},
                      .values = {1, -0.6, -0.6, -0.6, 1, -0.6, -0.6, -0.6, 1}};
  CHECK(solved(matrix, {1, 1, 1}, {}).info.reason == Reason::indefinite);
}

void broken_matrices_are_refused_with_the_row() {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  refused({.starts = {0}, .columns = {}, .values = {}}, "empty");
  refused(of_two(1, 0, 0, nan), "row 1");
  refused(of_two(1, std::numeric_limits<double>::infinity(), 0, 1), "row 0");
  refused(of_two(1, 0, 0, 0), "row 1");
  refused(of_two(1, 0, 0, -3), "row 1");
  refused(of_two(4, 1, 1.1, 4), "not symmetric");
  refused({.starts = {0, 1, 2}, .columns = {0, 7}, .values = {1, 1}}, "row 1");
}

void broken_right_hand_sides_are_refused() {
  const Matrix matrix = of_two(2, 1, 1, 2);
  Solver solver(matrix.view(), {});
  std::vector<double> x(2, 0.0);
  for (const auto& [b, because] : std::vector<std::pair<std::vector<double>, std::string>>{
           {{1.0}, "b has 1"}, {{1.0, std::nan("")}, "b[1] is nan"}}) {
    try {
      solver.solve(b, x, {});
      CHECK(false);
    } catch (const MatrixError& error) {
      CHECK(std::string(error.what()).find(because) != std::string::npos);
    }
  }
}

void both_widths_of_indices_give_the_same() {
  const Matrix matrix = rough(14, 2, 7);
  const OwnedCsr<std::int64_t> wide{.starts = {matrix.starts.begin(), matrix.starts.end()},
                                    .columns = {matrix.columns.begin(), matrix.columns.end()},
                                    .values = matrix.values};
  const std::vector<double> b = ones(matrix);
  std::vector<double> x(b.size(), 0.0);
  Solver(wide.view(), {}).solve(b, x, {});
  CHECK(x == solved(matrix, b, {}).x);
}

}  // namespace

int main() {
  if (!kUnderTsan) {  // large, and their threads do nothing that those below do not
    iterations_are_those_of_the_ordering();
    a_residual_that_grows_before_it_falls_costs_fp32_few_iterations();
    fp32_goes_on_where_the_residual_grew();
  }
  one_block_is_the_natural_order();
  threads_do_not_show();
  jumps_of_coefficients_are_solved_with();
  the_error_is_of_second_order();
  goes_on_from_where_x_is();
  preconditioning_is_symmetric();
  no_right_hand_side_has_no_solution_but_zero();
  however_large_the_right_hand_side_is_x_is_as_many_times_as_large();
  the_next_right_hand_side_does_not_suffer_from_one_that_failed();
  what_ends_an_iteration_is_told();
  a_constant_nullspace_is_taken_out();
  an_indefinite_matrix_is_told_by_the_direction_it_shows_in();
  broken_matrices_are_refused_with_the_row();
  broken_right_hand_sides_are_refused();
  both_widths_of_indices_give_the_same();
}
