// Every row has one place; neighbours are never of one colour unless they are of one block; and all
// that is the same for any number of threads and both sizes of index.

#include "ordering.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "assemble.h"
#include "check.h"
#include "facts.h"
#include "generate.h"
#include "matrix.h"
#include "systems.h"

namespace {

using flowos::solve::assemble;
using flowos::solve::Csr;
using flowos::solve::Entry;
using flowos::solve::facts_of;
using flowos::solve::find_grid;
using flowos::solve::fit_brick;
using flowos::solve::Grid;
using flowos::solve::Mirror;
using flowos::solve::order_bricks;
using flowos::solve::order_graph;
using flowos::solve::Ordering;
using flowos::solve::OwnedCsr;
using flowos::solve::poisson;

OwnedCsr<std::int64_t> widened(const Matrix& matrix) {
  return {.starts = {matrix.starts.begin(), matrix.starts.end()},
          .columns = {matrix.columns.begin(), matrix.columns.end()},
          .values = matrix.values};
}

bool same(const Ordering& one, const Ordering& other) {
  return one.colour_starts == other.colour_starts && one.place == other.place &&
         one.row == other.row && one.block_rows == other.block_rows;
}

void places_are_a_permutation(const Ordering& ordering) {
  CHECK(ordering.place.size() == at(ordering.rows));
  CHECK(ordering.row.size() == at(ordering.places()));
  for (std::int64_t row = 0; row < ordering.rows; ++row) {
    const std::int32_t place = ordering.place[at(row)];
    CHECK(place >= 0 && place < ordering.places());
    CHECK(ordering.row[at(place)] == row);
  }
  const auto padding = std::count(ordering.row.begin(), ordering.row.end(), -1);
  CHECK(padding + ordering.rows == ordering.places());
}

// Of each group its colour. Each colour has groups.
std::vector<int> colours_of(const Ordering& ordering) {
  std::vector<int> colours;
  for (int colour = 0; colour < ordering.colours(); ++colour) {
    CHECK(ordering.colour_starts[at(colour)] < ordering.colour_starts[at(colour + 1)]);
    colours.resize(at(ordering.colour_starts[at(colour + 1)]), colour);
  }
  return colours;
}

void a_colour_is_independent(const Matrix& matrix, const Ordering& ordering) {
  const std::vector<int> colours = colours_of(ordering);
  const std::int64_t group_places = std::int64_t{ordering.block_rows} * ordering.lanes;
  const Csr<std::int32_t> all = matrix.view();
  for (std::int64_t row = 0; row < all.rows; ++row) {
    for (std::int32_t k = all.starts[row]; k < all.starts[row + 1]; ++k) {
      const std::int32_t one = ordering.place[at(row)];
      const std::int32_t other = ordering.place[at(all.columns[k])];
      const bool one_block = one / group_places == other / group_places &&
                             one % ordering.lanes == other % ordering.lanes;
      CHECK(one_block || colours[at(one / group_places)] != colours[at(other / group_places)]);
    }
  }
}

void is_an_ordering(const Matrix& matrix, const Ordering& ordering) {
  CHECK(ordering.rows == matrix.view().rows);
  places_are_a_permutation(ordering);
  a_colour_is_independent(matrix, ordering);
}

// ---- Grids.

Matrix matrix_of(const Grid& grid) {
  return grid.corners ? touching(grid, all_around()) : poisson(grid, 1);
}

bool same(const std::optional<Grid>& one, const Grid& other) {
  return one && one->cells == other.cells && one->corners == other.corners;
}

void is_found(const Grid& grid, const Matrix& matrix) {
  CHECK(same(find_grid(matrix.view(), 2), grid));
  CHECK(same(find_grid(widened(matrix).view(), 1), grid));
  const auto facts = facts_of(matrix.view(), 2);
  auto known = matrix.view();
  known.repeats = facts.repeats.data();
  CHECK(same(find_grid(known, 2), grid));
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
  CHECK(same(find_grid(thinned.view()), grid));
}

void bricks_are_an_ordering(const Grid& grid, const std::array<int, 3>& brick, int lanes) {
  const Ordering ordering = order_bricks(grid, brick, lanes, 1);
  is_an_ordering(matrix_of(grid), ordering);
  CHECK(ordering.colours() <= (grid.corners ? 8 : 2));
  CHECK(ordering.block_rows == brick[0] * brick[1] * brick[2]);
  CHECK(same(ordering, order_bricks(grid, brick, lanes, 3)));
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
    const std::array<int, 3> brick = fit_brick(grid, 64, lanes);
    const Ordering ordering = order_bricks(grid, brick, lanes, 2);
    CHECK(ordering.places() == ordering.rows);
    CHECK(loads_per_entry(matrix, ordering) < 1.04);
  }
}

// Rows of one brick at half the resolution are still of one brick, with the same group and lane.
void halved_grids_keep_groups_and_lanes() {
  const Grid grid{{32, 24, 40}};
  const Grid half{{16, 12, 20}};
  const Ordering fine = order_bricks(grid, {4, 2, 4}, 8, 1);
  const Ordering coarse = order_bricks(half, {2, 1, 2}, 8, 1);
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

void bricks_fit() {
  CHECK((fit_brick(Grid{{128, 128, 128}}, 512, 16) == std::array{8, 8, 8}));
  CHECK((fit_brick(Grid{{128, 128, 128}}, 32, 8) == std::array{2, 4, 4}));
  for (const std::int64_t side : {50, 77, 100, 101}) {
    const Grid grid{{side, side, side}};
    for (const int lanes : {8, 16}) {
      const std::array<int, 3> brick = fit_brick(grid, 512, lanes);
      CHECK(brick[0] * brick[1] * brick[2] <= 512);
      const Ordering ordering = order_bricks(grid, brick, lanes, 2);
      CHECK(static_cast<double>(ordering.places()) < 1.25 * static_cast<double>(ordering.rows));
    }
  }
}

// ---- Graphs.

Matrix random_graph(std::int32_t rows, int ties, std::int32_t reach, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<Entry> entries;
  for (std::int32_t row = 0; row < rows; ++row) {
    entries.push_back({.row = row, .column = row, .value = 100});
    for (int i = 0; i < ties; ++i) {
      const auto distance = static_cast<std::int32_t>(1 + random() % static_cast<unsigned>(reach));
      if (distance > row) continue;
      const double value = -1.0 - static_cast<double>(random() % 100);
      entries.push_back({.row = row, .column = row - distance, .value = value});
    }
  }
  const std::array<std::vector<Entry>, 1> lists = {entries};
  return assemble(rows, lists, Mirror::across_diagonal, 1);
}

// One row touches all others.
Matrix star(std::int32_t rows) {
  std::vector<Entry> entries;
  for (std::int32_t row = 0; row < rows; ++row) {
    entries.push_back({.row = row, .column = row, .value = 2.0 * rows});
    if (row != rows / 2) entries.push_back({.row = row, .column = rows / 2, .value = -1});
  }
  const std::array<std::vector<Entry>, 1> lists = {entries};
  return assemble(rows, lists, Mirror::across_diagonal, 1);
}

void a_graph_is_ordered(const Matrix& matrix, int block_rows, int colours, int lanes) {
  const Ordering ordering = order_graph(matrix.view(), block_rows, colours, lanes, 1);
  is_an_ordering(matrix, ordering);
  CHECK(same(ordering, order_graph(matrix.view(), block_rows, colours, lanes, 3)));
  CHECK(same(ordering, order_graph(widened(matrix).view(), block_rows, colours, lanes, 2)));
  const std::int64_t blocks = (ordering.rows + block_rows - 1) / block_rows;
  CHECK(ordering.colours() >= std::min<std::int64_t>(colours, blocks));
}

// How many entries a row has left and right of the diagonal. Padding has none.
std::array<std::int64_t, 2> width_of(const Csr<std::int32_t>& all, const Ordering& ordering,
                                     std::int64_t place) {
  const std::int32_t row = ordering.row[at(place)];
  std::array<std::int64_t, 2> width = {0, 0};
  if (row < 0) return width;
  for (std::int32_t k = all.starts[row]; k < all.starts[row + 1]; ++k) {
    const std::int32_t other = ordering.place[at(all.columns[k])];
    if (other != place) ++width[other > place ? 1 : 0];
  }
  return width;
}

// Most of what is stored for a step is of rows, and not padding; and blocks are full.
void rows_of_a_step_are_alike() {
  const Matrix matrix = poisson(Grid{{1, 300, 300}}, 1);
  const Csr<std::int32_t> all = matrix.view();
  const Ordering ordering = order_graph(all, 32, 0, 8, 2);
  CHECK(static_cast<double>(ordering.places()) < 1.01 * static_cast<double>(all.rows));
  CHECK(ordering.colours() <= 8);
  std::int64_t stored = 0;
  for (std::int64_t first = 0; first < ordering.places(); first += ordering.lanes) {
    std::array<std::int64_t, 2> widest = {0, 0};
    for (std::int64_t place = first; place < first + ordering.lanes; ++place) {
      const std::array<std::int64_t, 2> width = width_of(all, ordering, place);
      widest = {std::max(widest[0], width[0]), std::max(widest[1], width[1])};
    }
    stored += (widest[0] + widest[1]) * ordering.lanes;
  }
  CHECK(static_cast<double>(stored) < 1.3 * static_cast<double>(all.starts[all.rows] - all.rows));
}

// Several chunks, numbered near their neighbours or not at all.
void large_graphs_are_ordered() {
  const Matrix near = random_graph(300000, 2, 500, 7);
  const Matrix far = random_graph(300000, 2, 300000, 8);
  for (const Matrix* matrix : {&near, &far}) {
    const Ordering ordering = order_graph(matrix->view(), 24, 0, 8, 2);
    is_an_ordering(*matrix, ordering);
    CHECK(same(ordering, order_graph(matrix->view(), 24, 0, 8, 1)));
  }
}

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
    for (const std::array<int, 3>& brick :
         {std::array{1, 1, 1}, std::array{2, 4, 4}, std::array{3, 5, 2}, std::array{64, 64, 64}}) {
      bricks_are_an_ordering(Grid{{12, 20, 16}}, brick, lanes);
      bricks_are_an_ordering(Grid{{7, 11, 13}}, brick, lanes);
      bricks_are_an_ordering(Grid{.cells = {7, 11, 13}, .corners = true}, brick, lanes);
      bricks_are_an_ordering(Grid{{1, 1, 45}}, brick, lanes);
    }
  }
  bricks_are_an_ordering(Grid{{24, 12, 12}}, {2, 4, 4}, 4);  // odd parts: in a mirror
  lanes_of_a_grid_read_side_by_side(Grid{{32, 48, 64}});
  lanes_of_a_grid_read_side_by_side(Grid{.cells = {32, 48, 64}, .corners = true});
  halved_grids_keep_groups_and_lanes();
  bricks_fit();
  for (const int lanes : {1, 8}) {
    for (const int block_rows : {1, 5, 32}) {
      for (const int colours : {0, 20}) {
        a_graph_is_ordered(poisson(Grid{{1, 31, 33}}, 1), block_rows, colours, lanes);
        a_graph_is_ordered(random_graph(700, 3, 40, 1), block_rows, colours, lanes);
        a_graph_is_ordered(random_graph(300, 12, 300, 2), block_rows, colours, lanes);
        a_graph_is_ordered(random_graph(400, 0, 1, 3), block_rows, colours, lanes);
        a_graph_is_ordered(star(200), block_rows, colours, lanes);
        a_graph_is_ordered(star(1), block_rows, colours, lanes);
      }
    }
  }
  rows_of_a_step_are_alike();
  large_graphs_are_ordered();
}
