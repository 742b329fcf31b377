#include "krylov/defaults.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "ic/pivots.h"
#include "krylov/solver.h"
#include "matrix/grid.h"
#include "matrix/matrix.h"
#include "matrix/properties.h"
#include "multigrid/aggregates.h"
#include "ordering/ordering.h"

namespace flowos::solve {

bool takes_tiles(const Settings& settings) {
  constexpr int kTileColours = 2;
  return settings.colours <= kTileColours;
}

Ordered ordered_in_tiles(const Grid& grid, const Settings& settings, int lanes, int threads) {
  constexpr int kTileRows = 512;
  const std::array<int, 3> tile =
      fit_tile(grid, settings.block_rows > 0 ? settings.block_rows : kTileRows, lanes);
  return {.ordering = order_tiles(grid, tile, lanes, threads),
          .blocks = "tiles " + std::to_string(tile[2]) + "x" + std::to_string(tile[1]) + "x" +
                    std::to_string(tile[0])};
}

template <class Index>
Ordered ordered_in_grown(const Csr<Index>& matrix, const Settings& settings, int lanes,
                         int threads) {
  constexpr int kGrownRows = 32;
  const int rows = settings.block_rows > 0 ? settings.block_rows : kGrownRows;
  return {.ordering = order_graph(matrix, rows, settings.colours, lanes, threads),
          .blocks = "grown " + std::to_string(rows)};
}

// A mean of .9 is one also where its sum was rounded, and where it was not summed.
Dropping dropping_of(const Settings& settings, const Dominance& dominance,
                     const Evenness& evenness) {
  constexpr double kSmooth = 0.95, kTight = 0.9 - 1e-9, kAlike = 10;
  const bool tight = dominance.everywhere && dominance.share >= kTight && evenness.negative;
  const bool smooth = tight && evenness.max_diagonal <= kAlike * evenness.min_diagonal;
  const double chosen = smooth ? kSmooth : 0;
  return {.relax = settings.relax >= 0 ? settings.relax : chosen, .dominant = dominance.everywhere};
}

namespace {

// An iteration with incomplete Cholesky moves fewer bytes than one with a cycle (far fewer, where
// cells touch many others), and there are no levels to build: so there must be rows enough for it
// to need many more of them. It needs as many as grids are long.
std::int64_t min_rows(const std::optional<Grid>& grid) {
  if (!grid || grid->cells[0] == 1) return 100'000;
  return grid->corners ? 30'000'000 : 500'000;
}

}  // namespace

bool coarse_pays(std::int64_t rows, const std::optional<Grid>& grid, const Dominance& dominance) {
  constexpr double kMinShare = 0.97 - 1e-9;  // one of .97 is one also where its sum was rounded
  return rows >= min_rows(grid) && dominance.everywhere && dominance.share >= kMinShare;
}

template <class Index>
bool coarse_pays(const Csr<Index>& matrix, const std::optional<Grid>& grid,
                 const Dominance& dominance) {
  const bool in_plane = !grid || grid->cells[0] == 1;
  return coarse_pays(matrix.rows, grid, dominance) && (in_plane || grid_ties(matrix, *grid).even);
}

template Ordered ordered_in_grown(const Csr<std::int32_t>&, const Settings&, int, int);
template Ordered ordered_in_grown(const Csr<std::int64_t>&, const Settings&, int, int);
template bool coarse_pays(const Csr<std::int32_t>&, const std::optional<Grid>&, const Dominance&);
template bool coarse_pays(const Csr<std::int64_t>&, const std::optional<Grid>&, const Dominance&);

}  // namespace flowos::solve
