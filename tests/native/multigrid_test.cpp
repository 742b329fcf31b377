// The multigrid preconditioner: what its cycle, its levels and its kernels promise.

#include "multigrid/multigrid.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "check.h"
#include "krylov/cg.h"
#include "krylov/defaults.h"
#include "matrix/grid.h"
#include "matrix/properties.h"
#include "multigrid/aggregates.h"
#include "multigrid/members.h"
#include "multigrid/stencil.h"
#include "systems.h"

using flowos::solve::Aggregates;
using flowos::solve::coarse_matrix;
using flowos::solve::coarse_pays;
using flowos::solve::ConjugateGradients;
using flowos::solve::facts_of;
using flowos::solve::Grid;
using flowos::solve::halve;
using flowos::solve::Halving;
using flowos::solve::Members;
using flowos::solve::Multigrid;
using flowos::solve::Stencil;
using flowos::solve::stencil_of;

namespace {

// Threads do the same in every cycle: for ThreadSanitizer few will do.
constexpr double kSmall = kUnderTsan ? 1e-1 : 1e-7;

Vector times(const Matrix& matrix, const Vector& x) {
  Vector result(x.size());
  for (std::size_t row = 0; row < x.size(); ++row) {
    for (std::int32_t k = matrix.starts[row]; k < matrix.starts[row + 1]; ++k) {
      result[row] += matrix.values[at(k)] * x[at(matrix.columns[at(k)])];
    }
  }
  return result;
}

double dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

double residual_of(const Matrix& matrix, const Vector& b, const Vector& x) {
  Vector r = times(matrix, x);
  for (std::size_t i = 0; i < r.size(); ++i) r[i] = b[i] - r[i];
  return std::sqrt(dot(r, r) / dot(b, b));
}

template <class T>
Multigrid<T> of(const Matrix& matrix, const std::optional<Grid>& grid, int threads) {
  return {matrix.view(), grid, facts_of(matrix.view(), threads).dominance, threads};
}

struct Solved {
  int iterations;
  double estimate;  // of ||r|| / ||b|| by the recurrence
  Vector x;
};

template <class T>
Solved solved(const Matrix& matrix, const std::optional<Grid>& grid, const Vector& b, double rtol,
              int threads = 2) {
  Multigrid<T> multigrid = of<T>(matrix, grid, threads);
  ConjugateGradients iteration(multigrid.preconditioner());
  iteration.load(b, 1);
  Solved result{0, 1, Vector(b.size())};
  while (true) {
    result.estimate = std::sqrt(iteration.rr() / dot(b, b));
    if (result.estimate <= rtol || result.iterations == 300) break;
    CHECK(iteration.iterate());
    ++result.iterations;
  }
  multigrid.preconditioner().add_to(result.x);
  return result;
}

template <class T>
void check_symmetric(const Matrix& matrix, const std::optional<Grid>& grid, double rounding) {
  Multigrid<T> multigrid = of<T>(matrix, grid, 2);
  Draws draws(3);
  const std::size_t n = matrix.starts.size() - 1;
  const Vector a = draws.some(n), b = draws.some(n);
  Vector ma(n), mb(n);
  multigrid.preconditioner().precondition(a, ma);
  multigrid.preconditioner().precondition(b, mb);
  CHECK(dot(a, ma) > 0 && dot(b, mb) > 0);
  const double size = std::sqrt(dot(a, ma) * dot(b, mb));
  CHECK(std::fabs(dot(a, mb) - dot(b, ma)) <= rounding * size);
}

void the_cycle_is_symmetric_and_positive_definite() {
  for (const Grid& grid : {Grid{{20, 20, 20}}, Grid{{1, 70, 90}}, Grid{{1, 1, 900}},
                           Grid{{7, 33, 18}}, Grid{{2, 2, 2}}, Grid{{1, 1, 2}}}) {
    const Matrix matrix = cells_of(grid, {1, 1, 1});
    check_symmetric<double>(matrix, grid, 1e-12);
    check_symmetric<double>(matrix, std::nullopt, 1e-12);
    check_symmetric<float>(matrix, grid, 1e-5);
    check_symmetric<float>(matrix, std::nullopt, 1e-5);
  }
  const Grid grid{{20, 20, 20}};
  check_symmetric<double>(cells_of(grid, {1, 1, 1}, true, 6), grid, 1e-12);
  check_symmetric<double>(cells_of(grid, {1e-3, 1e-3, 1}), grid, 1e-12);
}

void iterations_hardly_grow_with_the_grid() {
  const auto iterations = [](std::int64_t side) {
    const Matrix matrix = poisson(side);
    const Vector b(at(side * side * side), 1.0);
    const Solved result = solved<double>(matrix, Grid{{side, side, side}}, b, 1e-7);
    CHECK(residual_of(matrix, b, result.x) <= 1.01e-7);
    return result.iterations;
  };
  const int small = iterations(16), large = iterations(64);
  CHECK(large <= 20 && large <= small + 8);
}

void the_recurrence_is_the_true_residual() {
  const Matrix matrix = cells_of({{13, 22, 31}}, {1, 1, 1}, true, 2);
  const Vector b = Draws(5).some(matrix.starts.size() - 1);
  for (const auto& grid : {std::optional<Grid>(Grid{{13, 22, 31}}), std::optional<Grid>()}) {
    const Solved fine = solved<double>(matrix, grid, b, 1e-9);
    CHECK(std::fabs(residual_of(matrix, b, fine.x) - fine.estimate) <= 1e-12);
    const Solved single = solved<float>(matrix, grid, b, 1e-3);
    CHECK(std::fabs(residual_of(matrix, b, single.x) - single.estimate) <= 1e-5);
  }
}

void the_answer_is_the_same_bits_whatever_the_threads() {
  const Grid grid{{40, 40, 40}};
  for (const double decades : {0.0, 1.0}) {
    const Matrix matrix = cells_of(grid, {1, 1, 1}, true, decades);
    const Vector b = Draws(6).some(matrix.starts.size() - 1);
    for (const auto& seen : {std::optional<Grid>(grid), std::optional<Grid>()}) {
      if (decades == 0 && !seen) continue;
      const Solved one = solved<float>(matrix, seen, b, 1e-1, 1);
      const Solved more = solved<float>(matrix, seen, b, 1e-1, 3);
      CHECK(one.iterations == more.iterations);
      CHECK(std::memcmp(one.x.data(), more.x.data(), one.x.size() * sizeof(double)) == 0);
    }
  }
}

void iterations_hardly_grow_where_cells_touch_at_corners() {
  for (const Grid& grid : {Grid{.cells = {1, 128, 128}, .corners = true},
                           Grid{.cells = {24, 24, 24}, .corners = true}}) {
    const Matrix matrix = touching(grid, all_around());
    const Vector b = Draws(10).some(matrix.starts.size() - 1);
    CHECK(solved<double>(matrix, grid, b, kSmall).iterations <= 16);
  }
}

// As many rows of a mesh as one chunk cannot hold, numbered in any order.
void numbers_of_rows_do_not_matter() {
  const Matrix matrix = renumbered(cells_of({{1, 260, 260}}, {1, 1, 1}, true, 2));
  const Vector b = Draws(11).some(matrix.starts.size() - 1);
  CHECK(solved<double>(matrix, std::nullopt, b, kSmall).iterations <= 50);
}

void conductances_of_many_sizes_take_few_cycles() {
  const Matrix matrix = cells_of({{1, 120, 120}}, {1, 1, 1}, true, 6);
  const Vector b = Draws(12).some(matrix.starts.size() - 1);
  CHECK(solved<double>(matrix, std::nullopt, b, kSmall).iterations <= 60);
}

void only_strong_directions_are_halved() {
  const Grid grid{{16, 16, 64}};
  const Matrix matrix = cells_of(grid, {1e-3, 1e-3, 1});
  const auto multigrid = of<double>(matrix, grid, 1);
  CHECK(multigrid.summary().rows[1] == 8192);
  CHECK(multigrid.summary().rows[2] == 4096);
  const Vector b(matrix.starts.size() - 1, 1.0);
  CHECK(solved<double>(matrix, grid, b, kSmall).iterations <= 25);
}

double greatest_difference(const Vector& a, const Vector& b) {
  double result = 0;
  for (std::size_t i = 0; i < a.size(); ++i) result = std::max(result, std::fabs(a[i] - b[i]));
  return result;
}

Stencil seen_in(const Matrix& matrix, const Grid& grid, int threads) {
  const auto seen = stencil_of(matrix.view(), grid, threads);
  if (!seen) std::abort();
  return *seen;
}

void a_stencil_is_the_matrix_that_it_was_seen_in() {
  for (const Grid& grid : {Grid{{5, 6, 7}}, Grid{{1, 8, 2}}, Grid{{1, 1, 9}}}) {
    const Matrix matrix = cells_of(grid, {1, 0.3, 1e-3});
    const Stencil stencil = seen_in(matrix, grid, 2);
    CHECK(stencil.alike());
    const Vector x = Draws(11).some(matrix.starts.size() - 1);
    CHECK(greatest_difference(times(matrix, x), times(stencil.matrix(2), x)) < 1e-15);
  }
}

void one_cell_that_is_not_alike_makes_it_no_stencil() {
  const Grid grid{{4, 5, 6}};
  const auto seen = [&](const Matrix& changed) {
    const bool is_seen = stencil_of(changed.view(), grid, 2).has_value();
    const auto facts = facts_of(changed.view(), 2);
    auto known = changed.view();
    known.repeats = facts.repeats.data();
    CHECK(stencil_of(known, grid, 2).has_value() == is_seen);
    return is_seen;
  };
  const Matrix even = cells_of(grid, {1, 1, 1});
  CHECK(seen(even));
  for (const std::size_t entry : {std::size_t{3}, even.values.size() - 1}) {
    Matrix changed = even;
    changed.values[entry] *= 1.5;
    CHECK(!seen(changed));
  }
  CHECK(!seen(cells_of(grid, {1, 1, 1}, false)));
  Matrix twice = even;  // a row that has one neighbour twice and another not at all
  twice.columns[at(twice.starts[40])] = twice.columns[at(twice.starts[40]) + 1];
  CHECK(!seen(twice));
}

void a_halved_stencil_is_the_product_with_its_aggregates() {
  const Grid grid{{8, 4, 16}};
  Matrix matrix = cells_of(grid, {1, 0.5, 0.7});
  for (double& value : matrix.values) value += value > 0 ? 0.01 : 0;
  Stencil stencil = seen_in(matrix, grid, 1);
  for (const std::array<bool, 3>& halved :
       {std::array{true, false, true}, std::array{true, true, true},
        std::array{false, true, true}}) {
    const Halving halving{.grid = stencil.grid, .halved = halved};
    CHECK(stencil.halves(halving));
    const Aggregates aggregates = halve(halving, 1);
    matrix = coarse_matrix(stencil.matrix(1).view(), aggregates, Members(aggregates, 1), true, 1);
    stencil = stencil.halved(halving, true);
    const Vector x = Draws(12).some(matrix.starts.size() - 1);
    CHECK(greatest_difference(times(matrix, x), times(stencil.matrix(2), x)) < 1e-12);
  }
  CHECK(!stencil.halves({.grid = stencil.grid, .halved = {false, true, false}}));
}

// What is even by a hair is not stored as such.
void even_levels_do_what_others_do() {
  for (const Grid& grid : {Grid{{32, 32, 32}}, Grid{{16, 24, 40}}, Grid{{1, 80, 96}},
                           Grid{{9, 16, 50}}, Grid{{1, 1, 3000}}}) {
    const Matrix even = cells_of(grid, {1, 1, 0.6});
    Matrix odd = even;
    odd.values.back() *= 1 + 1e-14;
    const std::size_t n = even.starts.size() - 1;
    const Vector r = Draws(13).some(n);
    Vector z(n), other(n);
    of<double>(even, grid, 2).preconditioner().precondition(r, z);
    of<double>(odd, grid, 2).preconditioner().precondition(r, other);
    CHECK(greatest_difference(z, other) < 1e-9 * greatest_difference(z, Vector(n)));
    CHECK(solved<double>(even, grid, r, kSmall).iterations ==
          solved<double>(odd, grid, r, kSmall).iterations);
  }
}

bool pays(const Matrix& matrix, const Grid& grid) {
  return coarse_pays(matrix.view(), grid, facts_of(matrix.view(), 2).dominance);
}

void levels_are_for_many_rows_that_hold_on_to_each_other() {
  const Grid large{{1, 350, 300}}, small{{1, 110, 100}}, box{{50, 50, 45}}, cube{{80, 80, 80}};
  CHECK(!pays(cells_of(small, {1, 1, 1}), small));
  CHECK(!pays(cells_of(box, {1, 1, 1}), box));
  CHECK(pays(cells_of(large, {1, 1, 1}, true, 6), large));
  CHECK(pays(cells_of(cube, {1, 1, 1}), cube));
  CHECK(!pays(cells_of(cube, {1, 1, 1}, true, 6), cube));
  Matrix matrix = cells_of(large, {1, 1, 1});
  CHECK(pays(matrix, large));
  for (double& value : matrix.values) value += value > 0 ? 1 : 0;
  CHECK(!pays(matrix, large));
}

void rows_without_ties_are_divided_by_their_diagonal() {
  Matrix matrix;
  matrix.starts.push_back(0);
  for (std::int32_t row = 0; row < 1000; ++row) {
    matrix.columns.push_back(row);
    matrix.values.push_back(1 + row % 7);
    matrix.starts.push_back(row + 1);
  }
  Multigrid<double> multigrid = of<double>(matrix, std::nullopt, 2);
  const Vector r = Draws(8).some(1000);
  Vector z(1000);
  multigrid.preconditioner().precondition(r, z);
  for (std::size_t row = 0; row < 1000; ++row) {
    CHECK(std::fabs(z[row] * matrix.values[row] - r[row]) < 1e-12);
  }
}

void what_is_singular_stays_finite() {
  const Grid grid{{12, 12, 12}};
  Multigrid<float> multigrid = of<float>(cells_of(grid, {1, 1, 1}, false), grid, 2);
  Vector r = Draws(9).some(1728), z(1728);
  multigrid.preconditioner().precondition(r, z);
  CHECK(std::ranges::all_of(z, [](double value) { return std::isfinite(value); }));
}

void a_residual_of_nothing_is_corrected_by_nothing() {
  const Matrix matrix = poisson(6);
  Multigrid<float> multigrid = of<float>(matrix, std::nullopt, 1);
  Vector z(216, 1.0);
  multigrid.preconditioner().precondition(Vector(216), z);
  CHECK(std::ranges::all_of(z, [](double value) { return value == 0; }));
}

}  // namespace

int main() {
  the_cycle_is_symmetric_and_positive_definite();
  if (!kUnderTsan) {  // large, and their threads do nothing that those below do not
    iterations_hardly_grow_with_the_grid();
    levels_are_for_many_rows_that_hold_on_to_each_other();
  }
  the_recurrence_is_the_true_residual();
  the_answer_is_the_same_bits_whatever_the_threads();
  iterations_hardly_grow_where_cells_touch_at_corners();
  numbers_of_rows_do_not_matter();
  conductances_of_many_sizes_take_few_cycles();
  only_strong_directions_are_halved();
  a_stencil_is_the_matrix_that_it_was_seen_in();
  one_cell_that_is_not_alike_makes_it_no_stencil();
  a_halved_stencil_is_the_product_with_its_aggregates();
  even_levels_do_what_others_do();
  rows_without_ties_are_divided_by_their_diagonal();
  what_is_singular_stays_finite();
  a_residual_of_nothing_is_corrected_by_nothing();
}
