#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/storage.h"
#include "matrix/grid.h"
#include "matrix/matrix.h"

namespace flowos::solve {

// Hierarchical block multi-colour ordering (Iwashita, Li, Fukaya: CCF Transactions on HPC 2, 2020).
// Rows are gathered to blocks, blocks are coloured so that no two of a colour are neighbours, and
// `lanes` blocks of a colour make a group. A row's place is
//   (group * block_rows + step) * lanes + lane,
// so that one step of all blocks of a group is one vector. Places without a row are padding.
// Depends on the matrix alone: not on threads, ranks or processor.
struct Ordering {
  std::int64_t rows = 0;
  int lanes = 8;                            // blocks that are computed at once
  int block_rows = 1;                       // steps of a block
  std::array<int, 3> tile = {};             // its cells (z, y, x), where blocks are tiles of a grid
  std::vector<std::int64_t> colour_starts;  // of each colour its first group; then their number
  Line<std::int32_t> place;                 // of each row of the matrix
  Line<std::int32_t> row;                   // of each place; -1: padding

  int colours() const { return static_cast<int>(colour_starts.size()) - 1; }
  std::int64_t groups() const { return colour_starts.back(); }
  std::int64_t group_places() const { return std::int64_t{block_rows} * lanes; }
  std::int64_t places() const { return groups() * group_places(); }
};

// In all that follows, threads: 0 is as many as there are; throws MatrixError at 2^31 places.
// Columns must be those of rows. What else is wrong with a matrix does no harm here.

// Whether rows are cells of a grid each of which touches only those around it.
template <class Index>
std::optional<Grid> find_grid(const Csr<Index>& matrix, int threads = 0);

// The tiles of at most `block_rows` cells with which conjugate gradients are done soonest: as
// near to cubes as the grid can be cut into without much padding.
std::array<int, 3> fit_tile(const Grid& grid, int block_rows, int lanes);

// Blocks are tiles of these cells (z, y, x); two colours, or where cells touch at corners two for
// each direction. Lanes are equal parts of the grid, where
// it can be cut so, and the tiles of a group lie at the same place in each: then what the lanes of
// a group read in one direction lies side by side. Which tile has which group and lane depends on
// the numbers of tiles only; groups of a colour go from low z to high.
Ordering order_tiles(const Grid& grid, const std::array<int, 3>& tile, int lanes, int threads = 0);

// Blocks are grown along the strongest ties, of at most `block_rows` rows. colours: as few as come
// of themselves (0), or at least so many.
template <class Index>
Ordering order_graph(const Csr<Index>& matrix, int block_rows, int colours, int lanes,
                     int threads = 0);

struct Walk;

// Rows are coloured one by one: no two rows of a colour touch, so that their order in a block does
// not matter, and rows of a step are alike. For sweeps alone: an incomplete factor of this order
// would be a poor one.
template <class Index>
Ordering order_points(const Csr<Index>& matrix, const Walk& walk, int lanes, int threads = 0);

}  // namespace flowos::solve
