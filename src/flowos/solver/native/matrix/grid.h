#pragma once

#include <array>
#include <cstdint>

namespace flowos::solve {

// A box of cells in C order (the last moves fastest), of which a row is one.
struct Grid {
  std::array<std::int64_t, 3> cells = {1, 1, 1};  // z, y, x
  bool corners = false;  // they touch also those with which they share an edge or a corner

  bool operator==(const Grid&) const = default;
};

using Cell = std::array<std::int64_t, 3>;  // z, y, x

// How many rows after a cell the next one comes, along each direction.
inline Cell strides_of(const Grid& grid) {
  return {grid.cells[1] * grid.cells[2], grid.cells[2], 1};
}

// Rows have 31 bits, and dividing by those takes half as long.
inline Cell cell_of(const Grid& grid, std::int64_t row) {
  const auto short_row = static_cast<std::uint32_t>(row);
  const auto x = static_cast<std::uint32_t>(grid.cells[2]);
  const auto y = static_cast<std::uint32_t>(grid.cells[1]);
  const std::uint32_t line = short_row / x;
  return {line / y, line % y, short_row % x};
}

// Calls work(row, cell) for each row of [first, past).
template <class Work>
void each_cell(const Grid& grid, std::int64_t first, std::int64_t past, const Work& work) {
  Cell cell = cell_of(grid, first);
  for (std::int64_t row = first; row < past; ++row) {
    work(row, cell);
    if (++cell[2] < grid.cells[2]) continue;
    cell[2] = 0;
    if (++cell[1] < grid.cells[1]) continue;
    cell[1] = 0;
    ++cell[0];
  }
}

}  // namespace flowos::solve
