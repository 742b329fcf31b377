#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ic/pivots.h"
#include "krylov/solver.h"
#include "matrix/grid.h"
#include "matrix/matrix.h"
#include "matrix/properties.h"
#include "ordering/ordering.h"

namespace flowos::solve {

// What is taken for settings that are left open.

// An ordering, and its blocks in words: "tiles 8x8x8", "grown 32".
struct Ordered {
  Ordering ordering;
  std::string blocks;
};

// Tiles have two colours: where more are asked for, blocks are grown on a grid too.
bool takes_tiles(const Settings& settings);
Ordered ordered_in_tiles(const Grid& grid, const Settings& settings, int lanes, int threads);
template <class Index>
Ordered ordered_in_grown(const Csr<Index>& matrix, const Settings& settings, int lanes,
                         int threads);

// Relaxation helps where the coefficients are smooth and rows add up to nearly 0.
Dropping dropping_of(const Settings& settings, const Dominance& dominance,
                     const Evenness& evenness);

// Whether a coarse correction makes up for what it costs: where there are many rows, and all they
// have to hold on to is each other,
bool coarse_pays(std::int64_t rows, const std::optional<Grid>& grid, const Dominance& dominance);
// and not in a box whose ties vary from cell to cell.
template <class Index>
bool coarse_pays(const Csr<Index>& matrix, const std::optional<Grid>& grid,
                 const Dominance& dominance);

}  // namespace flowos::solve
