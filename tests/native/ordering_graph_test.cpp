// Orderings of graphs, by blocks and by single rows, and the walk that they go by. See
// ordering_test.cpp.

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <vector>

#include "check.h"
#include "matrix/assemble.h"
#include "matrix/generate.h"
#include "matrix/grid.h"
#include "matrix/matrix.h"
#include "ordering/ordering.h"
#include "ordering/traversal.h"
#include "orderings.h"
#include "systems.h"

namespace {

using flowos::solve::assemble;
using flowos::solve::Entry;
using flowos::solve::Grid;
using flowos::solve::Mirror;
using flowos::solve::order_graph;
using flowos::solve::order_points;
using flowos::solve::poisson;
using flowos::solve::Walk;
using flowos::solve::walk_of;

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

template <class Index>
Ordering points_of(const OwnedCsr<Index>& matrix, int lanes, int threads) {
  return order_points(matrix.view(), walk_of(matrix.view(), threads), lanes, threads);
}

void points_are_ordered(const Matrix& matrix, int lanes) {
  const Ordering ordering = points_of(matrix, lanes, 1);
  is_an_ordering(matrix, ordering);
  CHECK(same(ordering, points_of(matrix, lanes, 3)));
  CHECK(same(ordering, points_of(widened(matrix), lanes, 2)));
  const std::vector<int> colours = colours_of(ordering);
  const auto colour = [&](std::int64_t row) {
    return colours[at(ordering.place[at(row)] / ordering.group_places())];
  };
  const Csr<std::int32_t> all = matrix.view();
  for (std::int64_t row = 0; row < all.rows; ++row) {
    for (std::int32_t k = all.starts[row]; k < all.starts[row + 1]; ++k) {
      CHECK(all.columns[k] == row || colour(all.columns[k]) != colour(row));
    }
  }
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

double stored_per_entry(const Matrix& matrix, const Ordering& ordering) {
  const Csr<std::int32_t> all = matrix.view();
  std::int64_t stored = 0;
  for (std::int64_t first = 0; first < ordering.places(); first += ordering.lanes) {
    std::array<std::int64_t, 2> widest = {0, 0};
    for (std::int64_t place = first; place < first + ordering.lanes; ++place) {
      const std::array<std::int64_t, 2> width = width_of(all, ordering, place);
      widest = {std::max(widest[0], width[0]), std::max(widest[1], width[1])};
    }
    stored += (widest[0] + widest[1]) * ordering.lanes;
  }
  return static_cast<double>(stored) / static_cast<double>(all.starts[all.rows] - all.rows);
}

// Most of what is stored for a step is of rows, and not padding; and blocks are full.
void rows_of_a_step_are_alike() {
  const Matrix matrix = poisson(Grid{{1, 300, 300}}, 1);
  const Ordering blocks = order_graph(matrix.view(), 32, 0, 8, 2);
  CHECK(blocks.colours() <= 8);
  CHECK(stored_per_entry(matrix, blocks) < 1.3);
  const Matrix uneven = random_graph(50000, 4, 500, 9);
  const Ordering points = points_of(uneven, 16, 2);
  CHECK(stored_per_entry(uneven, points) < 1.1);
  for (const Ordering* ordering : {&blocks, &points}) {
    CHECK(static_cast<double>(ordering->places()) < 1.03 * static_cast<double>(ordering->rows));
  }
}

// Every row comes once; chunks hold their rows, and what touches others is known.
void a_walk_goes_over_all_rows(const Matrix& matrix, std::int64_t chunks) {
  const Walk walk = walk_of(matrix.view(), 2);
  CHECK(walk.chunks() == chunks);
  std::vector<int> seen(at(matrix.view().rows));
  std::vector<std::int32_t> outer;
  walk.each_chunk(1, [&](const Walk::Chunk& chunk) {
    for (const std::int32_t row : chunk.rows) {
      ++seen[at(row)];
      CHECK(chunk.holds(row));
      const auto begin = matrix.columns.begin();
      if (!std::all_of(begin + matrix.starts[at(row)], begin + matrix.starts[at(row + 1)],
                       [&](std::int32_t column) { return chunk.holds(column); })) {
        outer.push_back(row);
      }
    }
  });
  CHECK(std::ranges::all_of(seen, [](int times) { return times == 1; }));
  CHECK(outer == walk.outer);
}

// A chain, of whose rows so many, an even number, touch one that is far off.
Matrix chain(std::int32_t rows, std::int32_t far) {
  std::vector<Entry> entries;
  for (std::int32_t row = 0; row < rows; ++row) {
    entries.push_back({.row = row, .column = row, .value = 4});
    if (row > 0) entries.push_back({.row = row, .column = row - 1, .value = -1});
  }
  for (std::int32_t row = 0; row < far / 2; ++row) {
    entries.push_back({.row = row + rows / 2, .column = row, .value = -1});
  }
  const std::array<std::vector<Entry>, 1> lists = {entries};
  return assemble(rows, lists, Mirror::across_diagonal, 1);
}

void a_walk_goes_by_number_until_more_than_one_row_in_twenty_reaches_far() {
  constexpr std::int32_t kRows = 200'000;
  a_walk_goes_over_all_rows(chain(kRows, kRows / 20), 4);
  a_walk_goes_over_all_rows(chain(kRows, kRows / 20 + 2), 1);
}

// What several threads do, and no more: for ThreadSanitizer, which what they made needs not.
void threads_order(const Matrix& matrix) {
  order_graph(matrix.view(), 24, 0, 8, 2);
  points_of(matrix, 16, 3);
  points_of(widened(matrix), 16, 2);
}

void a_large_graph_is_ordered(const Matrix& matrix, std::int64_t chunks) {
  if (kUnderTsan) return threads_order(matrix);
  const Ordering ordering = order_graph(matrix.view(), 24, 0, 8, 2);
  is_an_ordering(matrix, ordering);
  CHECK(same(ordering, order_graph(matrix.view(), 24, 0, 8, 1)));
  points_are_ordered(matrix, 16);
  a_walk_goes_over_all_rows(matrix, chunks);
}

// Several chunks, numbered near their neighbours or not at all. Of the latter, more than a tenth of
// the entries must reach farther than half a chunk.
void large_graphs_are_ordered() {
  a_large_graph_is_ordered(random_graph(300000, 2, 500, 7), 5);
  a_large_graph_is_ordered(random_graph(150000, 2, 150000, 8), 1);
}

}  // namespace

int main() {
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
  for (const int lanes : {1, 8, 16}) {
    points_are_ordered(poisson(Grid{{1, 31, 33}}, 1), lanes);
    points_are_ordered(random_graph(700, 3, 40, 1), lanes);
    points_are_ordered(random_graph(300, 12, 300, 2), lanes);
    points_are_ordered(random_graph(400, 0, 1, 3), lanes);
    points_are_ordered(star(200), lanes);
    points_are_ordered(star(1), lanes);
  }
  rows_of_a_step_are_alike();
  a_walk_goes_by_number_until_more_than_one_row_in_twenty_reaches_far();
  large_graphs_are_ordered();
}
