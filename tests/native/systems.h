#pragma once

// Test matrices for the solver.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "matrix/grid.h"
#include "matrix/matrix.h"

using Matrix = flowos::solve::OwnedCsr<std::int32_t>;
using Vector = std::vector<double>;

inline std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

// Numbers between 0 and 1 that are the same everywhere (splitmix64).
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : state_(seed) {}
  double next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
  }
  Vector some(std::size_t count) {
    Vector result(count);
    for (double& value : result) value = next() - 0.5;
    return result;
  }

 private:
  std::uint64_t state_;
};

// Rows put together one entry at a time.
class Rows {
 public:
  explicit Rows(Matrix& matrix) : matrix_(matrix) { matrix_.starts.push_back(0); }
  void add(std::int64_t column, double value) {
    matrix_.columns.push_back(static_cast<std::int32_t>(column));
    matrix_.values.push_back(value);
  }
  void end() { matrix_.starts.push_back(static_cast<std::int32_t>(matrix_.columns.size())); }

 private:
  Matrix& matrix_;
};

struct Cells {
  flowos::solve::Grid grid;
  std::array<double, 3> ties;  // along z, y and x
  bool held;                   // at the rim, to what is around
  Vector conductance;          // of each
};

inline void add_cell(const Cells& cells, std::int64_t row, Rows& rows) {
  const auto& sides = cells.grid.cells;
  const std::array<std::int64_t, 3> strides = {sides[1] * sides[2], sides[2], 1};
  double diagonal = 0;
  for (std::size_t way = 0; way < 6; ++way) {
    const std::size_t d = way / 2;
    const std::int64_t step = way % 2 == 0 ? -1 : 1, to = row / strides[d] % sides[d] + step;
    const bool inside = to >= 0 && to < sides[d];
    const std::int64_t other = inside ? row + step * strides[d] : row;
    const double a = cells.conductance[at(row)], b = cells.conductance[at(other)];
    const double tie = cells.ties[d] * 2 * a * b / (a + b);
    if (inside || (cells.held && sides[d] > 1)) diagonal += tie;
    if (inside) rows.add(other, -tie);
  }
  rows.add(row, diagonal);
  rows.end();
}

// Conductances of cells vary by a factor of up to 10^decades.
inline Matrix cells_of(const flowos::solve::Grid& grid, const std::array<double, 3>& ties,
                       bool held = true, double decades = 0) {
  Draws draws(7);
  Cells cells{.grid = grid, .ties = ties, .held = held, .conductance = {}};
  cells.conductance.resize(at(grid.cells[0] * grid.cells[1] * grid.cells[2]));
  for (double& value : cells.conductance) value = std::pow(10.0, decades * draws.next());
  Matrix result;
  Rows rows(result);
  for (std::size_t row = 0; row < cells.conductance.size(); ++row) {
    add_cell(cells, static_cast<std::int64_t>(row), rows);
  }
  return result;
}

// The same system, its unknowns in an order of no meaning.
inline Matrix renumbered(const Matrix& matrix) {
  const std::size_t rows = matrix.starts.size() - 1;
  std::vector<std::int32_t> number(rows), row_of(rows);
  std::iota(row_of.begin(), row_of.end(), 0);
  Draws draws(13);
  for (std::size_t i = rows; i-- > 1;) {
    std::swap(row_of[i], row_of[static_cast<std::size_t>(draws.next() * static_cast<double>(i))]);
  }
  for (std::size_t i = 0; i < rows; ++i) number[at(row_of[i])] = static_cast<std::int32_t>(i);
  Matrix result;
  Rows lines(result);
  for (const std::int32_t row : row_of) {
    for (std::int32_t k = matrix.starts[at(row)]; k < matrix.starts[at(row + 1)]; ++k) {
      lines.add(number[at(matrix.columns[at(k)])], matrix.values[at(k)]);
    }
    lines.end();
  }
  return result;
}

// Ways from a cell to others, in cells along z, y and x.
using Ways = std::vector<std::array<std::int64_t, 3>>;

// Half of those to all cells around one.
inline Ways all_around() {
  Ways ways;
  for (const std::int64_t y : {-1, 0, 1}) {
    for (const std::int64_t x : {-1, 0, 1}) ways.push_back({1, y, x});
  }
  ways.insert(ways.end(), {{0, 1, -1}, {0, 1, 0}, {0, 1, 1}, {0, 0, 1}});
  return ways;
}

inline void add_touching(const flowos::solve::Grid& grid, const Ways& ways, std::int64_t row,
                         Rows& rows) {
  const auto [nz, ny, nx] = grid.cells;
  double diagonal = 0;
  for (const auto& way : ways) {
    for (const std::int64_t sign : {-1, 1}) {
      const std::int64_t z = row / nx / ny + sign * way[0], y = row / nx % ny + sign * way[1],
                         x = row % nx + sign * way[2];
      if ((nz == 1 && z != 0) || (ny == 1 && y != 0)) continue;
      ++diagonal;
      if (z < 0 || z >= nz || y < 0 || y >= ny || x < 0 || x >= nx) continue;
      rows.add((z * ny + y) * nx + x, -1);
    }
  }
  rows.add(row, diagonal);
  rows.end();
}

// Cells are tied by 1 to those that these ways lead to, and back; what is around the grid counts.
inline Matrix touching(const flowos::solve::Grid& grid, const Ways& ways) {
  Matrix matrix;
  Rows rows(matrix);
  for (std::int64_t row = 0; row < grid.cells[0] * grid.cells[1] * grid.cells[2]; ++row) {
    add_touching(grid, ways, row, rows);
  }
  return matrix;
}

// As of finite elements, each of which ties its nodes and has half of them in common with the next:
// what is off the diagonal is positive, and together larger than it. The nodes of an element differ
// by `tie` in one direction and are alike in all others.
inline Matrix elements(std::int64_t count, std::int64_t nodes_each, double tie) {
  const std::int64_t half = nodes_each / 2, rows = half * (count + 1);
  Matrix result;
  Rows lines(result);
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t last = std::min(row / half, count - 1);
    const std::int64_t first = std::max<std::int64_t>(row / half - 1, 0);
    for (std::int64_t to = first * half; to < (last + 2) * half; ++to) {
      double value = 0;
      for (std::int64_t element = first; element <= last; ++element) {
        if (to / half != element && to / half != element + 1) continue;
        value += to == row ? 1 : tie;
      }
      lines.add(to, value);
    }
    lines.end();
  }
  return result;
}

inline Matrix poisson(std::int64_t side) { return cells_of({{side, side, side}}, {1, 1, 1}); }
