// Aggregates, and the matrix that is made of them.

#include "coarse_aggregates.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "check.h"
#include "coarse_members.h"
#include "ordering.h"
#include "systems.h"

using flowos::solve::aggregate_pairs;
using flowos::solve::Aggregates;
using flowos::solve::coarse_matrix;
using flowos::solve::Grid;
using flowos::solve::halve;
using flowos::solve::halved_brick;
using flowos::solve::halved_ordering;
using flowos::solve::halved_steps;
using flowos::solve::Halving;
using flowos::solve::Members;
using flowos::solve::order_bricks;
using flowos::solve::Ordering;

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

void pairs_of_pairs_follow_strong_ties() {
  const Matrix matrix = cells_of({{1, 60, 60}}, {1, 1e-4, 1});
  const Aggregates aggregates = aggregate_pairs(matrix.view(), 2, 2);
  CHECK(aggregates.count >= 3600 / 6 && aggregates.count <= 3600 / 3);
  for (std::int64_t row = 0; row + 60 < 3600; ++row) {
    CHECK(aggregates.of[at(row)] != aggregates.of[at(row + 60)]);
  }
}

void aggregates_are_the_same_whatever_the_threads() {
  const Matrix matrix = cells_of({{41, 60, 70}}, {1, 1, 1}, true, 4);
  const Aggregates one = aggregate_pairs(matrix.view(), 2, 1);
  const Matrix coarse = coarse_matrix(matrix.view(), one, Members(one, 1), true, 1);
  const Aggregates more = aggregate_pairs(matrix.view(), 2, 3);
  CHECK(one.of == more.of);
  const Matrix same = coarse_matrix(matrix.view(), more, Members(more, 3), true, 3);
  CHECK(coarse.columns == same.columns && coarse.values == same.values);
}

void bricks_hold_their_halved_cells() {
  const Grid grid{{9, 16, 20}};
  const std::array<int, 3> brick = {2, 4, 8};
  const Halving halving{.grid = grid, .halved = {true, false, true}};
  CHECK((halved_brick(halving, brick) == std::array<int, 3>{1, 4, 4}));
  CHECK((halved_brick(halving, {3, 4, 8}) == std::array<int, 3>{}));
  const Ordering ordering = order_bricks(grid, brick, 16);
  const Aggregates aggregates = halve(halving, 2);
  CHECK(aggregates.count == 800);
  const auto steps = halved_steps(halving, brick);
  const Ordering coarse = halved_ordering(ordering, halving, steps, 2);
  for (std::int64_t row = 0; row < ordering.rows; ++row) {
    const std::int64_t place = ordering.place[at(row)];
    const std::int64_t to = coarse.place[at(aggregates.of[at(row)])];
    CHECK(coarse.row[at(to)] == aggregates.of[at(row)]);
    CHECK(place % 16 == to % 16 && place / 16 / 64 == to / 16 / 16);
    CHECK(to / 16 % 16 == steps[at(place / 16 % 64)]);
  }
}

void pairs_do_not_depend_on_units() {
  const Matrix matrix = cells_of({{1, 60, 60}}, {1, 1, 1}, true, 4);
  for (const double unit : {0x1p-500, 0x1p500}) {
    Matrix other = matrix;
    for (double& value : other.values) value *= unit;
    CHECK(aggregate_pairs(matrix.view(), 2, 1).of == aggregate_pairs(other.view(), 2, 1).of);
  }
}

}  // namespace

int main() {
  ties_of_halved_cells_are_those_of_a_grid_twice_as_coarse();
  ties_at_corners_are_loosened_as_those_of_sides();
  a_matrix_that_is_not_dominant_keeps_its_galerkin_product();
  pairs_of_pairs_follow_strong_ties();
  pairs_do_not_depend_on_units();
  aggregates_are_the_same_whatever_the_threads();
  bricks_hold_their_halved_cells();
}
