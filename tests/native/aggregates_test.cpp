// Aggregates, and the matrix that is made of them.

#include "multigrid/aggregates.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "check.h"
#include "matrix/grid.h"
#include "multigrid/members.h"
#include "ordering/ordering.h"
#include "ordering/traversal.h"
#include "systems.h"

using flowos::solve::Aggregates;
using flowos::solve::coarse_matrix;
using flowos::solve::Grid;
using flowos::solve::grow_aggregates;
using flowos::solve::halve;
using flowos::solve::halved_ordering;
using flowos::solve::halved_steps;
using flowos::solve::halved_tile;
using flowos::solve::Halving;
using flowos::solve::Members;
using flowos::solve::order_tiles;
using flowos::solve::Ordering;
using flowos::solve::walk_of;

namespace {

void ties_of_halved_cells_are_those_of_a_grid_twice_as_coarse() {
  const Matrix matrix = poisson(16);
  const Aggregates halved = halve({.grid = {{16, 16, 16}}, .halved = {true, true, true}}, 2);
  CHECK(halved.count == 512);
  const Matrix coarse = coarse_matrix(matrix.view(), halved, Members(halved, 2), true, 2);
  for (std::size_t row = 0; row < 512; ++row) {
    double sum = 0;
    for (std::int32_t k = coarse.starts[row]; k < coarse.starts[row + 1]; ++k) {
      const double value = coarse.values[at(k)];
      sum += value;
      // Area over distance: 4 / 2.
      CHECK(coarse.columns[at(k)] == static_cast<std::int32_t>(row) || value == -2);
    }
    double held = 0;  // what ties its cells to what is around the grid
    for (const std::size_t place : {row / 64, row / 8 % 8, row % 8}) {
      if (place == 0 || place == 7) held += 4;
    }
    CHECK(std::fabs(sum - held) < 1e-12);
  }
}

// 2 along a side and 2 at its ends, and 1 across a corner, each over a distance of 2.
void ties_at_corners_are_loosened_as_those_of_sides() {
  const Grid grid{.cells = {1, 16, 16}, .corners = true};
  const Matrix matrix = touching(grid, all_around());
  const Aggregates halved = halve({.grid = grid, .halved = {false, true, true}}, 2);
  const Matrix coarse = coarse_matrix(matrix.view(), halved, Members(halved, 2), true, 2);
  for (std::int32_t row = 0; row < 64; ++row) {
    for (std::int32_t k = coarse.starts[at(row)]; k < coarse.starts[at(row + 1)]; ++k) {
      const std::int32_t column = coarse.columns[at(k)];
      if (column == row) continue;
      const bool side = column / 8 == row / 8 || column % 8 == row % 8;
      CHECK(coarse.values[at(k)] == (side ? -2 : -0.5));
    }
  }
}

void a_matrix_that_is_not_dominant_keeps_its_galerkin_product() {
  const Matrix matrix = poisson(8);
  const Aggregates halved = halve({.grid = {{8, 8, 8}}, .halved = {true, true, true}}, 2);
  const Matrix coarse = coarse_matrix(matrix.view(), halved, Members(halved, 1), false, 1);
  for (std::size_t row = 0; row < 64; ++row) {
    for (std::int32_t k = coarse.starts[row]; k < coarse.starts[row + 1]; ++k) {
      const bool diagonal = coarse.columns[at(k)] == static_cast<std::int32_t>(row);
      CHECK(coarse.values[at(k)] == (diagonal ? 24 : -4));
    }
  }
}

Aggregates grown(const Matrix& matrix, int threads) {
  return grow_aggregates(matrix.view(), walk_of(matrix.view(), threads), threads);
}

void aggregates_follow_strong_ties() {
  const Matrix matrix = cells_of({{1, 60, 60}}, {1, 1e-4, 1});
  const Aggregates aggregates = grown(matrix, 2);
  CHECK(aggregates.count >= 3600 / 6 && aggregates.count <= 3600 / 3);
  for (std::int64_t row = 0; row + 60 < 3600; ++row) {
    CHECK(aggregates.of[at(row)] != aggregates.of[at(row + 60)]);
  }
}

// Squares: of two cells next to each other, and of those above them.
void aggregates_of_a_mesh_are_no_lines() {
  const Aggregates aggregates = grown(cells_of({{1, 64, 64}}, {1, 1, 1}), 1);
  int squares = 0;
  for (std::int64_t row = 0; row + 65 < 4096; ++row) {
    const std::int32_t one = aggregates.of[at(row)];
    squares += one == aggregates.of[at(row + 1)] && one == aggregates.of[at(row + 64)] &&
                       one == aggregates.of[at(row + 65)]
                   ? 1
                   : 0;
  }
  CHECK(squares > 900);
}

// A chain of pairs, tied by 4 within and by 1.5 to the next one, which is strong enough to be drawn
// along by, were there nothing stronger.
void rows_are_left_to_their_strongest_ties() {
  Matrix matrix;
  Rows rows(matrix);
  for (std::int64_t row = 0; row < 1000; ++row) {
    const bool first = row % 2 == 0;
    if (row > 0) rows.add(row - 1, first ? -1.5 : -4);
    if (row < 999) rows.add(row + 1, first ? -4 : -1.5);
    rows.add(row, 5.5);
    rows.end();
  }
  const Aggregates aggregates = grown(matrix, 1);
  for (std::size_t row = 0; row < 1000; row += 2) {
    CHECK(aggregates.of[row] == aggregates.of[row + 1]);
  }
  CHECK(aggregates.count == 500);
}

void what_a_row_that_touches_all_is_gathered_with_is_bounded() {
  constexpr std::int64_t kRows = 60000;
  Matrix matrix;
  Rows rows(matrix);
  for (std::int64_t row = 0; row < kRows; ++row) {
    for (std::int64_t other = 0; row == 7 && other < kRows; ++other) {
      if (other != 7) rows.add(other, -1);
    }
    if (row != 7) rows.add(7, -1);
    rows.add(row, row == 7 ? kRows : 2);
    rows.end();
  }
  const Aggregates aggregates = grown(matrix, 2);
  CHECK(aggregates.count > kRows - 10 && aggregates.count <= kRows);
}

void aggregates_are_the_same_whatever_the_threads() {
  const Matrix matrix = cells_of({{41, 60, 70}}, {1, 1, 1}, true, 4);
  const Aggregates one = grown(matrix, 1);
  const Matrix coarse = coarse_matrix(matrix.view(), one, Members(one, 1), true, 1);
  const Aggregates more = grown(matrix, 3);
  CHECK(one.of == more.of);
  const Matrix same = coarse_matrix(matrix.view(), more, Members(more, 3), true, 3);
  CHECK(coarse.columns == same.columns && coarse.values == same.values);
}

void tiles_hold_their_halved_cells() {
  const Grid grid{{9, 16, 20}};
  const std::array<int, 3> tile = {2, 4, 8};
  const Halving halving{.grid = grid, .halved = {true, false, true}};
  CHECK((halved_tile(halving, tile) == std::array<int, 3>{1, 4, 4}));
  CHECK((halved_tile(halving, {3, 4, 8}) == std::array<int, 3>{}));
  const Ordering ordering = order_tiles(grid, tile, 16);
  const Aggregates aggregates = halve(halving, 2);
  CHECK(aggregates.count == 800);
  const auto steps = halved_steps(halving, tile);
  const Ordering coarse = halved_ordering(ordering, halving, steps, 2);
  for (std::int64_t row = 0; row < ordering.rows; ++row) {
    const std::int64_t place = ordering.place[at(row)];
    const std::int64_t to = coarse.place[at(aggregates.of[at(row)])];
    CHECK(coarse.row[at(to)] == aggregates.of[at(row)]);
    CHECK(place % 16 == to % 16 && place / 16 / 64 == to / 16 / 16);
    CHECK(to / 16 % 16 == steps[at(place / 16 % 64)]);
  }
}

void aggregates_do_not_depend_on_units() {
  const Matrix matrix = cells_of({{1, 60, 60}}, {1, 1, 1}, true, 4);
  for (const double unit : {0x1p-500, 0x1p500}) {
    Matrix other = matrix;
    for (double& value : other.values) value *= unit;
    CHECK(grown(matrix, 1).of == grown(other, 1).of);
  }
}

}  // namespace

int main() {
  ties_of_halved_cells_are_those_of_a_grid_twice_as_coarse();
  ties_at_corners_are_loosened_as_those_of_sides();
  a_matrix_that_is_not_dominant_keeps_its_galerkin_product();
  aggregates_follow_strong_ties();
  aggregates_of_a_mesh_are_no_lines();
  rows_are_left_to_their_strongest_ties();
  what_a_row_that_touches_all_is_gathered_with_is_bounded();
  aggregates_do_not_depend_on_units();
  aggregates_are_the_same_whatever_the_threads();
  tiles_hold_their_halved_cells();
}
