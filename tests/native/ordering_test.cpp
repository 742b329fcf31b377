// Every row has one place; neighbours are never of one colour unless they are of one block; and all
// that is the same for any number of threads and both sizes of index.

#include "ordering/ordering.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "check.h"
#include "matrix/assemble.h"
#include "matrix/generate.h"
#include "matrix/grid.h"
#include "matrix/matrix.h"
#include "matrix/properties.h"
#include "orderings.h"
#include "systems.h"

namespace {

using flowos::solve::assemble;
using flowos::solve::Entry;
using flowos::solve::facts_of;
using flowos::solve::find_grid;
using flowos::solve::fit_tile;
using flowos::solve::Grid;
using flowos::solve::Mirror;
using flowos::solve::order_tiles;
using flowos::solve::poisson;

Matrix matrix_of(const Grid& grid) {
  return grid.corners ? touching(grid, all_around()) : poisson(grid, 1);
}

bool is(const std::optional<Grid>& one, const Grid& other) {
  return one && one->cells == other.cells && one->corners == other.corners;
}

void is_found(const Grid& grid, const Matrix& matrix) {
  CHECK(is(find_grid(matrix.view(), 2), grid));
  CHECK(is(find_grid(widened(matrix).view(), 1), grid));
  const auto facts = facts_of(matrix.view(), 2);
  auto known = matrix.view();
  known.repeats = facts.repeats.data();
  CHECK(is(find_grid(known, 2), grid));
}

void a_grid_is_found(const Grid& grid) {
  Grid wanted{.cells = {1, 1, 1}, .corners = grid.corners};  // axes of one cell do not show
  std::size_t axis = 2;
  for (std::size_t i = 3; i-- > 0;) {
    if (grid.cells[i] > 1) wanted.cells[axis--] = grid.cells[i];
  }
  is_found(wanted, matrix_of(grid));
}

void elements_of_a_grid_leave_it_one() {
  const Grid plane{.cells = {1, 9, 7}, .corners = true}, box{.cells = {6, 9, 7}, .corners = true};
  is_found(plane, touching(plane, {{0, 0, -1}, {0, -1, 0}, {0, -1, -1}}));  // triangles
  is_found(plane, touching(plane, {{0, 0, -1}, {0, -1, 0}, {0, -1, 1}}));
  is_found(box, touching(box, {{0, 0, -1},
                               {0, -1, 0},
                               {0, -1, -1},
                               {-1, 0, 0},
                               {-1, 0, -1},
                               {-1, -1, 0},
                               {-1, -1, -1}}));  // tetrahedra
  Ways edges = all_around();                     // what trilinear cubes have that is not 0
  std::erase_if(edges, [](const auto& way) {
    return std::abs(way[0]) + std::abs(way[1]) + std::abs(way[2]) == 1;
  });
  is_found(box, touching(box, edges));
}

Matrix with_entry(const Grid& grid, std::int32_t row, std::int32_t column) {
  const Matrix matrix = matrix_of(grid);
  std::vector<Entry> entries = {{.row = row, .column = column, .value = -0.5}};
  for (std::int32_t i = 0; i < matrix.view().rows; ++i) {
    for (std::int32_t k = matrix.starts[at(i)]; k < matrix.starts[at(i) + 1]; ++k) {
      const std::int32_t j = matrix.columns[at(k)];
      if (j <= i) entries.push_back({.row = i, .column = j, .value = matrix.values[at(k)]});
    }
  }
  const std::array<std::vector<Entry>, 1> lists = {entries};
  return assemble(matrix.view().rows, lists, Mirror::across_diagonal, 1);
}

void what_is_no_grid_is_not_taken_for_one() {
  const Grid grid{{5, 6, 7}};
  CHECK(find_grid(with_entry(grid, 7, 6).view()) == std::nullopt);    // around an end of x
  CHECK(find_grid(with_entry(grid, 42, 35).view()) == std::nullopt);  // around an end of y
  CHECK(find_grid(with_entry(grid, 6, 0).view()) == std::nullopt);    // periodic
  CHECK(find_grid(with_entry(grid, 200, 13).view()) == std::nullopt);
  const Grid all{.cells = {5, 6, 7}, .corners = true};
  CHECK(find_grid(with_entry(all, 13, 7).view()) == std::nullopt);    // periodic
  CHECK(find_grid(with_entry(all, 42, 35).view()) == std::nullopt);   // around an end of y
  CHECK(find_grid(with_entry(all, 200, 13).view()) == std::nullopt);  // too many distances
  const Grid chain{{1, 1, 30}};
  CHECK(find_grid(with_entry(chain, 12, 9).view()) == std::nullopt);
  CHECK(find_grid(Csr<std::int32_t>{}) == std::nullopt);
}

void missing_ties_leave_a_grid() {
  const Grid grid{{4, 6, 8}};
  Matrix matrix = poisson(grid, 1);
  std::mt19937 random(4);
  std::vector<Entry> entries;
  for (std::int32_t i = 0; i < matrix.view().rows; ++i) {
    for (std::int32_t k = matrix.starts[at(i)]; k < matrix.starts[at(i) + 1]; ++k) {
      const std::int32_t j = matrix.columns[at(k)];
      if (j == i || (j < i && random() % 3 > 0)) entries.push_back({i, j, matrix.values[at(k)]});
    }
  }
  const std::array<std::vector<Entry>, 1> lists = {entries};
  const Matrix thinned = assemble(matrix.view().rows, lists, Mirror::across_diagonal, 1);
  CHECK(is(find_grid(thinned.view()), grid));
}

void tiles_are_an_ordering(const Grid& grid, const std::array<int, 3>& tile, int lanes) {
  const Ordering ordering = order_tiles(grid, tile, lanes, 1);
  is_an_ordering(matrix_of(grid), ordering);
  CHECK(ordering.colours() <= (grid.corners ? 8 : 2));
  CHECK(ordering.block_rows == tile[0] * tile[1] * tile[2]);
  CHECK(same(ordering, order_tiles(grid, tile, lanes, 3)));
}

// How many loads of lanes that lie side by side the rows of a step need, over those of one row.
double loads_per_entry(const Matrix& matrix, const Ordering& ordering) {
  const Csr<std::int32_t> all = matrix.view();
  std::int64_t loads = 0;
  for (std::int64_t first = 0; first < ordering.places(); first += ordering.lanes) {
    std::set<std::int64_t> bases;
    for (int lane = 0; lane < ordering.lanes; ++lane) {
      const std::int32_t row = ordering.row[at(first + lane)];
      if (row < 0) continue;
      for (std::int32_t k = all.starts[row]; k < all.starts[row + 1]; ++k) {
        bases.insert(ordering.place[at(all.columns[k])] - lane);
      }
    }
    loads += static_cast<std::int64_t>(bases.size());
  }
  return static_cast<double>(loads * ordering.lanes) / static_cast<double>(all.starts[all.rows]);
}

void lanes_of_a_grid_read_side_by_side(const Grid& grid) {
  const Matrix matrix = matrix_of(grid);
  for (const int lanes : {4, 8, 16}) {
    const std::array<int, 3> tile = fit_tile(grid, 64, lanes);
    const Ordering ordering = order_tiles(grid, tile, lanes, 2);
    CHECK(ordering.places() == ordering.rows);
    if (!kUnderTsan) CHECK(loads_per_entry(matrix, ordering) < 1.04);  // in one thread
  }
}

// Rows of one tile at half the resolution are still of one tile, with the same group and lane.
void halved_grids_keep_groups_and_lanes() {
  const Grid grid{{32, 24, 40}};
  const Grid half{{16, 12, 20}};
  const Ordering fine = order_tiles(grid, {4, 2, 4}, 8, 1);
  const Ordering coarse = order_tiles(half, {2, 1, 2}, 8, 1);
  const auto group_and_lane = [](const Ordering& ordering, std::int64_t row) {
    const std::int64_t place = ordering.place[at(row)];
    return std::pair(place / ordering.lanes / ordering.block_rows, place % ordering.lanes);
  };
  for (std::int64_t z = 0; z < 32; ++z) {
    for (std::int64_t y = 0; y < 24; ++y) {
      for (std::int64_t x = 0; x < 40; ++x) {
        CHECK(group_and_lane(fine, (z * 24 + y) * 40 + x) ==
              group_and_lane(coarse, (z / 2 * 12 + y / 2) * 20 + x / 2));
      }
    }
  }
}

void tiles_fit() {
  CHECK((fit_tile(Grid{{128, 128, 128}}, 512, 16) == std::array{8, 8, 8}));
  CHECK((fit_tile(Grid{{128, 128, 128}}, 32, 8) == std::array{2, 4, 4}));
  for (const std::int64_t side : {50, 77, 100, 101}) {
    const Grid grid{{side, side, side}};
    for (const int lanes : {8, 16}) {
      const std::array<int, 3> tile = fit_tile(grid, 512, lanes);
      CHECK(tile[0] * tile[1] * tile[2] <= 512);
      const Ordering ordering = order_tiles(grid, tile, lanes, 2);
      CHECK(static_cast<double>(ordering.places()) < 1.25 * static_cast<double>(ordering.rows));
    }
  }
}

// ---- Graphs.

}  // namespace

int main() {
  for (const Grid& grid : {Grid{{3, 4, 5}}, Grid{{2, 2, 2}}, Grid{{1, 7, 4}}, Grid{{1, 1, 9}},
                           Grid{{6, 1, 4}}, Grid{{2, 9, 3}}, Grid{{30, 30, 30}}}) {
    a_grid_is_found(grid);
  }
  for (const Grid& grid : {Grid{{1, 7, 5}}, Grid{{3, 4, 5}}, Grid{{30, 30, 30}}}) {
    a_grid_is_found({.cells = grid.cells, .corners = true});
  }
  elements_of_a_grid_leave_it_one();
  what_is_no_grid_is_not_taken_for_one();
  missing_ties_leave_a_grid();
  for (const int lanes : {1, 3, 8, 16}) {
    for (const std::array<int, 3>& tile :
         {std::array{1, 1, 1}, std::array{2, 4, 4}, std::array{3, 5, 2}, std::array{16, 24, 64}}) {
      tiles_are_an_ordering(Grid{{12, 20, 16}}, tile, lanes);
      tiles_are_an_ordering(Grid{{7, 11, 13}}, tile, lanes);
      tiles_are_an_ordering(Grid{.cells = {7, 11, 13}, .corners = true}, tile, lanes);
      tiles_are_an_ordering(Grid{{1, 1, 45}}, tile, lanes);
    }
  }
  tiles_are_an_ordering(Grid{{24, 12, 12}}, {2, 4, 4}, 4);  // odd parts: in a mirror
  lanes_of_a_grid_read_side_by_side(Grid{{32, 48, 64}});
  lanes_of_a_grid_read_side_by_side(Grid{.cells = {32, 48, 64}, .corners = true});
  halved_grids_keep_groups_and_lanes();
  tiles_fit();
}
