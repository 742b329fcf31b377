#pragma once

#include <cstdint>

#include "matrix/grid.h"
#include "matrix/matrix.h"

namespace flowos::solve {

// Poisson's equation in a box with the solution given on its boundary, by second-order differences:
// 6 on the diagonal, -1 for each direct neighbour.
// Throws MatrixError if 32 bits cannot count the entries.
OwnedCsr<std::int32_t> poisson(const Grid& grid, int threads = 0);

// Rows of it, from `first` to before `end`; columns are numbered as in the whole. The starts begin
// with 0. What a rank of many makes for itself.
OwnedCsr<std::int32_t> poisson_rows(const Grid& grid, std::int64_t first, std::int64_t end,
                                    int threads = 0);

// A power grid: a square mesh of resistors of which some are missing and a few go far, nodes of a
// package that are tied to the mesh in many places, conductances over two decades, a node in a
// thousand grounded, all numbered nearly in order. The same everywhere for one seed: hashes and
// exactly rounded operations only.
OwnedCsr<std::int32_t> power_grid(std::int64_t side, std::uint64_t seed, int threads = 0);

constexpr std::int64_t kG3likeRows = 1585478;

// One of the size and the degrees of the SuiteSparse matrix G3_circuit, which it is not.
OwnedCsr<std::int32_t> g3like(std::uint64_t seed, int threads = 0);

}  // namespace flowos::solve
