// Lanes with one value for all hold the matrix, whatever its order.

#include "simd/even_lanes.h"

#include <array>
#include <cstdint>
#include <map>

#include "check.h"
#include "matrix/grid.h"
#include "matrix/matrix.h"
#include "ordering/ordering.h"
#include "simd/lanes_matrix.h"
#include "systems.h"

using namespace flowos::solve;

namespace {

constexpr double kScale = 0.25;

// By row and column; an entry may be stored in several parts.
using Entries = std::map<std::array<std::int64_t, 2>, double>;

// What an entry stands for, but for what is multiplied with zeros.
template <class T>
void read_entry(const GroupEntries<T>& entries, std::int32_t entry, const Ordering& ordering,
                std::int64_t first, bool lower, Entries& into) {
  const std::int32_t code = entries.codes[entry];
  CHECK(code < 0 || code % ordering.lanes == 0);
  for (int lane = 0; lane < ordering.lanes; ++lane) {
    const std::int64_t place = code >= 0 ? code + lane : entries.indices[~code + lane];
    if (place >= ordering.places()) {
      CHECK(place == ordering.places() + lane);
      continue;
    }
    CHECK((place < first + lane) == lower && place != first + lane);
    into[{ordering.row[at(first + lane)], ordering.row[at(place)]}] +=
        static_cast<double>(entries.values[entry]) / kScale;
  }
}

// One side of a group.
template <class T>
void read(const GroupEntries<T>& entries, const Ordering& ordering, std::int64_t group, bool lower,
          Entries& into) {
  for (int step = 0; step < ordering.block_rows; ++step) {
    const std::int64_t first = (group * ordering.block_rows + step) * ordering.lanes;
    for (std::int32_t e = entries.starts[step]; e < entries.starts[step + 1]; ++e) {
      read_entry(entries, e, ordering, first, lower, into);
    }
  }
}

template <class T>
void lanes_hold(const Matrix& matrix, const Ordering& ordering) {
  Entries wanted;
  const Csr<std::int32_t> all = matrix.view();
  for (std::int64_t row = 0; row < all.rows; ++row) {
    for (std::int32_t k = all.starts[row]; k < all.starts[row + 1]; ++k) {
      if (all.columns[k] == row || all.values[k] == 0) continue;
      wanted[{row, all.columns[k]}] += all.values[k];
    }
  }
  for (int threads = 1; threads <= 2; ++threads) {
    const EvenMatrix<T> lanes = even_matrix<T>(all, ordering, kScale, threads);
    Entries found;
    for (std::int64_t group = 0; group < ordering.groups(); ++group) {
      read(lanes.lower.groups()[group], ordering, group, true, found);
      read(lanes.upper.groups()[group], ordering, group, false, found);
    }
    CHECK(found == wanted);
  }
}

template <class T>
void lanes_hold_whatever_the_order(const Matrix& matrix, const Grid& grid) {
  lanes_hold<T>(matrix, order_tiles(grid, {4, 4, 4}, kLanes<T>));
  lanes_hold<T>(matrix, order_tiles(grid, {2, 3, 5}, kLanes<T>));
  lanes_hold<T>(matrix, order_graph(matrix.view(), 16, 0, kLanes<T>));
}

// Nothing is gathered where all lanes lie inside.
void what_lies_side_by_side_is_stored_once() {
  const Grid grid{{64, 64, 64}};
  const Matrix matrix = poisson(64);
  const EvenMatrix<float> lanes =
      even_matrix<float>(matrix.view(), order_tiles(grid, {8, 8, 8}, 16), kScale, 2);
  const auto entries = static_cast<double>(matrix.columns.size() - matrix.starts.size() + 1);
  CHECK(static_cast<double>(lanes.lower.entries() + lanes.upper.entries()) < 1.1 * entries);
  CHECK(static_cast<double>(lanes.lower.bytes() + lanes.upper.bytes()) < 2 * entries);
}

// An entry in two parts, one that is 0, and two values of one column of lanes.
Matrix odd_one() {
  Matrix matrix;
  Rows rows(matrix);
  constexpr std::int64_t kRows = 200;
  for (std::int64_t row = 0; row < kRows; ++row) {
    const double tie = row % 3 == 0 ? -1 : -2;
    rows.add((row + 1) % kRows, tie);
    rows.add((row + kRows - 1) % kRows, row % 3 == 1 ? -1 : -2);
    rows.add(row, 9);
    if (row % 5 == 0) rows.add((row + 1) % kRows, tie);
    if (row % 7 == 0) rows.add((row + 50) % kRows, 0);
    rows.end();
  }
  return matrix;
}

}  // namespace

int main() {
  const Grid grid{{9, 20, 17}};
  for (const std::array<double, 3>& ties : {std::array{1.0, 1.0, 1.0}, std::array{1.0, 2.0, 3.0}}) {
    const Matrix matrix = cells_of(grid, ties);
    lanes_hold_whatever_the_order<float>(matrix, grid);
    lanes_hold_whatever_the_order<double>(matrix, grid);
  }
  const Matrix odd = odd_one();
  lanes_hold<float>(odd, order_graph(odd.view(), 8, 0, kLanes<float>));
  lanes_hold<double>(odd, order_graph(odd.view(), 4, 0, kLanes<double>));
  what_lies_side_by_side_is_stored_once();
}
