// How it is seen from a matrix that its rows are the cells of a grid.

#include "matrix/grid.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <vector>

#include "base/for_each.h"
#include "matrix/matrix.h"
#include "matrix/repeated_rows.h"
#include "ordering/ordering.h"

namespace flowos::solve {
namespace {

constexpr std::int64_t kRunRows = 1 << 14;

// How far apart, counted in rows, neighbours are: different distances, as long as they are few.
class Distances {
 public:
  bool known(std::int64_t distance) const {
    return std::find(found_.begin(), found_.begin() + count_, distance) != found_.begin() + count_;
  }
  // False: there are more than a grid has.
  bool add(std::int64_t distance) {
    if (distance == 0 || known(distance)) return true;
    if (count_ == kMax) return false;
    found_[count_++] = distance;
    return true;
  }
  bool add(const Distances& other) {
    return std::all_of(other.found_.begin(), other.found_.begin() + other.count_,
                       [this](std::int64_t distance) { return add(distance); });
  }
  // From small to large.
  std::vector<std::int64_t> sorted() const {
    std::vector<std::int64_t> all(found_.begin(), found_.begin() + count_);
    std::sort(all.begin(), all.end());
    return all;
  }

 private:
  static constexpr std::uint8_t kMax = 13;  // half of the cells around one

  std::array<std::int64_t, kMax> found_{};
  std::uint8_t count_ = 0;
};

template <class Index>
bool add_rows(const Csr<Index>& matrix, std::int64_t first, std::int64_t end,
              Distances& distances) {
  for (std::int64_t row = first; row < end; ++row) {
    if (row > first && has_columns_of_row_before(matrix, row)) continue;
    for (Index k = matrix.starts[row]; k < matrix.starts[row + 1]; ++k) {
      const std::int64_t distance = std::abs(matrix.columns[k] - row);
      if (distance != 0 && !distances.known(distance) && !distances.add(distance)) return false;
    }
  }
  return true;
}

template <class Index>
std::optional<Distances> distances_of(const Csr<Index>& matrix, int threads) {
  Distances all;
  if (!add_rows(matrix, 0, std::min(matrix.rows, kRunRows), all)) return std::nullopt;
  const auto runs = at((matrix.rows + kRunRows - 1) / kRunRows);
  std::vector<Distances> found(runs, all);
  std::vector<char> few(runs, 1);
  for_runs(matrix.rows, kRunRows, threads, [&](std::int64_t first, std::int64_t end) {
    const auto run = at(first / kRunRows);
    few[run] = add_rows(matrix, first, end, found[run]) ? 1 : 0;
  });
  for (std::size_t run = 0; run < runs; ++run) {
    if (few[run] == 0 || !all.add(found[run])) return std::nullopt;
  }
  return all;
}

// A grid of which the lines are so far apart, and the planes.
struct Strides {
  std::int64_t line, plane;

  // Whether cells that touch may be so far apart.
  bool make(std::int64_t distance) const {
    for (const std::int64_t planes : {0, 1}) {
      for (const std::int64_t lines : {-1, 0, 1}) {
        if (std::abs(distance - planes * plane - lines * line) <= 1) return true;
      }
    }
    return false;
  }
  bool is_one(std::int64_t distance) const {
    return distance == 1 || distance == line || distance == plane;
  }
};

// Those that may make these distances, the simplest first. The smallest distance of lines is that
// of cells that have the same x, or that are next to those; the same holds for planes.
std::vector<Strides> strides_for(std::int64_t rows, const std::vector<std::int64_t>& distances) {
  const auto first = [&](const auto& is) {
    const auto found = std::ranges::find_if(distances, is);
    return found == distances.end() ? rows : *found;
  };
  std::vector<Strides> result;
  const std::int64_t near = first([](std::int64_t distance) { return distance > 1; });
  for (const std::int64_t line : {near, near + 1}) {
    const std::int64_t far = first([&](std::int64_t distance) {
      return !Strides{.line = line, .plane = rows}.make(distance);
    });
    for (const std::int64_t plane : {far, far + 1, far + line - 1, far + line, far + line + 1}) {
      const Strides strides{.line = line, .plane = plane};
      if (plane % line != 0 || rows % plane != 0) continue;
      if (std::ranges::all_of(distances, [&](auto distance) { return strides.make(distance); })) {
        result.push_back(strides);
      }
    }
  }
  return result;
}

// Whether the cell of a row is next to those of all rows that it touches.
template <class Index>
bool is_next_to_all(const Csr<Index>& matrix, const Grid& grid, std::int64_t row) {
  const Cell cell = cell_of(grid, row);
  for (Index k = matrix.starts[row]; k < matrix.starts[row + 1]; ++k) {
    const Cell other = cell_of(grid, matrix.columns[k]);
    for (std::size_t d = 0; d < 3; ++d) {
      if (std::abs(other[d] - cell[d]) > 1) return false;
    }
  }
  return true;
}

bool is_end(std::int64_t at, std::int64_t cells) {
  return cells > 1 && (at == 0 || at == cells - 1);
}

// Whether no row touches one beyond the end of its line or plane. What is at no end cannot.
template <class Index>
bool ends_where_it_ends(const Csr<Index>& matrix, const Grid& grid, int threads) {
  // No structured binding: clang 14 captures none.
  const std::int64_t z = grid.cells[0], y = grid.cells[1], x = grid.cells[2];
  std::atomic<bool> all = true;
  for_runs(z * y, std::max<std::int64_t>(1, kRunRows / x), threads,
           [&](std::int64_t first, std::int64_t past) {
             bool these = true;
             for (std::int64_t line = first; line < past; ++line) {
               const bool whole = is_end(line / y, z) || is_end(line % y, y) || x == 1;
               for (std::int64_t at = 0; at < x; at += whole ? 1 : x - 1) {
                 these = these && is_next_to_all(matrix, grid, line * x + at);
               }
             }
             if (!these) all = false;
           });
  return all;
}

}  // namespace

template <class Index>
std::optional<Grid> find_grid(const Csr<Index>& matrix, int threads) {
  if (matrix.rows < 1) return std::nullopt;
  const std::optional<Distances> found = distances_of(matrix, threads);
  if (!found) return std::nullopt;
  const std::vector<std::int64_t> distances = found->sorted();
  for (const Strides& strides : strides_for(matrix.rows, distances)) {
    const auto [line, plane] = strides;
    Grid grid{.cells = {matrix.rows / plane, plane / line, line}, .corners = false};
    grid.corners = !std::ranges::all_of(distances, [&](auto d) { return strides.is_one(d); });
    if (ends_where_it_ends(matrix, grid, threads)) return grid;
  }
  return std::nullopt;
}

template std::optional<Grid> find_grid(const Csr<std::int32_t>&, int);
template std::optional<Grid> find_grid(const Csr<std::int64_t>&, int);

}  // namespace flowos::solve
