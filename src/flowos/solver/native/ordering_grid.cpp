// How it is seen from a matrix that its rows are the cells of a grid.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "matrix.h"
#include "ordering.h"
#include "ordering_parts.h"
#include "rows_alike.h"

namespace flowos::solve {
namespace {

constexpr std::int64_t kRunRows = 1 << 14;

// How far apart, counted in rows, neighbours are: different distances, as long as they are few.
class Distances {
 public:
  bool known(std::int64_t distance) const {
    return distance == found_[0] || distance == found_[1] || distance == found_[2];
  }
  // False: there are more than a grid has.
  bool add(std::int64_t distance) {
    if (distance == 0 || known(distance)) return true;
    if (count_ == found_.size()) return false;
    found_[count_++] = distance;
    return true;
  }
  bool add(const Distances& other) {
    return std::all_of(other.found_.begin(), other.found_.end(),
                       [this](std::int64_t distance) { return add(distance); });
  }
  // From small to large.
  std::vector<std::int64_t> sorted() const {
    std::vector<std::int64_t> all(found_.begin(), found_.begin() + count_);
    std::sort(all.begin(), all.end());
    return all;
  }

 private:
  std::array<std::int64_t, 3> found_{};
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

// A box whose cells are so far from their neighbours.
std::optional<Grid> box_of(std::int64_t rows, std::vector<std::int64_t> distances) {
  if (distances.empty() || distances[0] != 1) distances.insert(distances.begin(), 1);
  if (distances.size() > 3) return std::nullopt;
  distances.push_back(rows);
  Grid grid;
  for (std::size_t i = 0; i + 1 < distances.size(); ++i) {
    if (distances[i + 1] % distances[i] != 0) return std::nullopt;
    grid.cells[2 - i] = distances[i + 1] / distances[i];
  }
  return grid;
}

// Whether no row touches one so far after it that lies beyond the end of its line of the grid.
template <class Index>
bool lines_end(const Csr<Index>& matrix, std::int64_t distance, std::int64_t line_cells) {
  if (line_cells == 1) return true;
  const std::int64_t line = distance * line_cells;
  for (std::int64_t last = line - distance; last < matrix.rows; last += line) {
    for (std::int64_t row = last; row < last + distance; ++row) {
      for (Index k = matrix.starts[row]; k < matrix.starts[row + 1]; ++k) {
        if (matrix.columns[k] == row + distance) return false;
      }
    }
  }
  return true;
}

}  // namespace

template <class Index>
std::optional<Grid> find_grid(const Csr<Index>& matrix, int threads) {
  if (matrix.rows < 1) return std::nullopt;
  const std::optional<Distances> distances = distances_of(matrix, threads);
  if (!distances) return std::nullopt;
  const std::optional<Grid> grid = box_of(matrix.rows, distances->sorted());
  if (!grid) return std::nullopt;
  const auto [z, y, x] = grid->cells;
  const bool ends =
      lines_end(matrix, 1, x) && lines_end(matrix, x, y) && lines_end(matrix, x * y, z);
  return ends ? grid : std::nullopt;
}

template std::optional<Grid> find_grid(const Csr<std::int32_t>&, int);
template std::optional<Grid> find_grid(const Csr<std::int64_t>&, int);

}  // namespace flowos::solve
