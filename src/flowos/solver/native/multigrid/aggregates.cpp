// Aggregates of the cells of a grid.

#include "multigrid/aggregates.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <vector>

#include "base/for_each.h"
#include "matrix/grid.h"
#include "matrix/matrix.h"
#include "ordering/ordering.h"

namespace flowos::solve {
namespace {

constexpr std::int64_t kRun = 1 << 14;

// Of a row, along each direction.
template <class Index>
std::array<double, 3> ties_of(const Csr<Index>& matrix, const Grid& grid, std::int64_t row) {
  const auto strides = strides_of(grid);
  std::array<double, 3> ties = {};
  for (Index k = matrix.starts[row]; k < matrix.starts[row + 1]; ++k) {
    const std::int64_t away = std::abs(static_cast<std::int64_t>(matrix.columns[k]) - row);
    for (std::size_t d = 0; d < 3; ++d) {
      if (away != strides[d] || grid.cells[d] == 1) continue;
      ties[d] = std::max(ties[d], std::fabs(matrix.values[k]));
      break;
    }
  }
  return ties;
}

int product(const std::array<int, 3>& tile) { return tile[0] * tile[1] * tile[2]; }

}  // namespace

std::array<bool, 3> GridTies::strong() const {
  constexpr double kStrong = 0.25;
  const double strongest = std::ranges::max(mean);
  return {mean[0] >= kStrong * strongest, mean[1] >= kStrong * strongest,
          mean[2] >= kStrong * strongest};
}

// A sample of ten thousand rows is enough.
template <class Index>
GridTies grid_ties(const Csr<Index>& matrix, const Grid& grid) {
  constexpr std::int64_t kLooks = 10000;
  constexpr double kUneven = 8, kFew = 0.05;
  const std::int64_t step = (matrix.rows / kLooks) | 1;
  GridTies result;
  std::vector<std::array<double, 3>> seen;
  for (std::int64_t row = 0; row < matrix.rows; row += step) {
    seen.push_back(ties_of(matrix, grid, row));
    for (std::size_t d = 0; d < 3; ++d) result.mean[d] += seen.back()[d];
  }
  const auto strong = result.strong();
  std::size_t uneven = 0;
  for (const auto& ties : seen) {
    double least = std::numeric_limits<double>::infinity(), most = 0;
    for (std::size_t d = 0; d < 3; ++d) {
      if (!strong[d]) continue;
      least = std::min(least, ties[d]);
      most = std::max(most, ties[d]);
    }
    if (most > kUneven * least) ++uneven;
  }
  for (double& mean : result.mean) mean /= static_cast<double>(seen.size());
  result.even = static_cast<double>(uneven) <= kFew * static_cast<double>(seen.size());
  return result;
}

Grid Halving::coarse() const {
  Grid result = grid;
  for (std::size_t d = 0; d < 3; ++d) {
    if (halved[d]) result.cells[d] = (grid.cells[d] + 1) / 2;
  }
  return result;
}

bool Halving::everywhere() const {
  return (halved[0] || grid.cells[0] == 1) && (halved[1] || grid.cells[1] == 1) &&
         (halved[2] || grid.cells[2] == 1);
}

Aggregates halve(const Halving& halving, int threads) {
  const auto& cells = halving.grid.cells;
  const Grid coarse = halving.coarse();
  const auto strides = strides_of(coarse);
  const auto to = [&](std::size_t d, std::int64_t cell) {
    return halving.halved[d] ? cell / 2 : cell;
  };
  Aggregates result;
  result.length = halving.grid.corners && halving.everywhere() ? 2 : 0;
  result.count = coarse.cells[0] * strides[0];
  result.of.resize(at(cells[0] * cells[1] * cells[2]));
  for_runs(cells[0] * cells[1], std::max<std::int64_t>(1, kRun / cells[2]), threads,
           [&](std::int64_t first, std::int64_t past) {
             for (std::int64_t line = first; line < past; ++line) {
               const std::int64_t coarse_line =
                   to(0, line / cells[1]) * strides[0] + to(1, line % cells[1]) * strides[1];
               std::int32_t* of = result.of.data() + line * cells[2];
               for (std::int64_t x = 0; x < cells[2]; ++x) {
                 of[x] = static_cast<std::int32_t>(coarse_line + to(2, x));
               }
             }
           });
  return result;
}

std::array<int, 3> halved_tile(const Halving& halving, const std::array<int, 3>& tile) {
  std::array<int, 3> result = tile;
  for (std::size_t d = 0; d < 3; ++d) {
    if (!halving.halved[d]) continue;
    if (tile[d] % 2 != 0) return {};
    result[d] = tile[d] / 2;
  }
  return result;
}

std::vector<std::uint16_t> halved_steps(const Halving& halving, const std::array<int, 3>& tile) {
  const std::array<int, 3> coarse = halved_tile(halving, tile);
  std::vector<std::uint16_t> result(at(product(tile)));
  for (int step = 0; step < product(tile); ++step) {
    const std::array<int, 3> cell = {step / (tile[1] * tile[2]), step / tile[2] % tile[1],
                                     step % tile[2]};
    int to = 0;
    for (std::size_t d = 0; d < 3; ++d) {
      to = to * coarse[d] + (halving.halved[d] ? cell[d] / 2 : cell[d]);
    }
    result[at(step)] = static_cast<std::uint16_t>(to);
  }
  return result;
}

namespace {

// Of a row, as halve() numbers them; strides: of the coarse grid.
std::int32_t aggregate_of(std::int32_t row, const Halving& halving, const Cell& strides) {
  const Cell cell = cell_of(halving.grid, row);
  std::int64_t sum = 0;
  for (std::size_t d = 0; d < 3; ++d) sum += cell[d] / (halving.halved[d] ? 2 : 1) * strides[d];
  return static_cast<std::int32_t>(sum);
}

}  // namespace

Ordering halved_ordering(const Ordering& ordering, const Halving& halving,
                         const std::vector<std::uint16_t>& steps, int threads) {
  const Grid coarse = halving.coarse();
  const Cell strides = strides_of(coarse);
  Ordering result;
  result.rows = coarse.cells[0] * strides[0];
  result.lanes = ordering.lanes;
  result.tile = halved_tile(halving, ordering.tile);
  result.block_rows = product(result.tile);
  result.colour_starts = ordering.colour_starts;
  result.place.resize(at(result.rows));
  result.row.assign(at(result.places()), -1);
  const auto place_group = [&](std::int64_t group) {
    const std::int32_t* row = ordering.row.data() + group * ordering.block_rows * ordering.lanes;
    for (const std::uint16_t step : steps) {
      std::int64_t to = (group * result.block_rows + step) * result.lanes;
      for (int lane = 0; lane < ordering.lanes; ++lane, ++row, ++to) {
        if (*row < 0 || result.row[at(to)] >= 0) continue;
        const std::int32_t aggregate = aggregate_of(*row, halving, strides);
        result.row[at(to)] = aggregate;
        result.place[at(aggregate)] = static_cast<std::int32_t>(to);
      }
    }
  };
  for_runs(ordering.groups(), 16, threads, [&](std::int64_t first, std::int64_t past) {
    for (std::int64_t group = first; group < past; ++group) place_group(group);
  });
  return result;
}

template GridTies grid_ties(const Csr<std::int32_t>&, const Grid&);
template GridTies grid_ties(const Csr<std::int64_t>&, const Grid&);

}  // namespace flowos::solve
