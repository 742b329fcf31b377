#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/storage.h"
#include "matrix/grid.h"
#include "matrix/matrix.h"
#include "ordering/ordering.h"
#include "ordering/traversal.h"

namespace flowos::solve {

// Rows gathered to rows of the next coarser level; all of one aggregate get the same correction.
struct Aggregates {
  std::int64_t count = 0;
  Raw<std::int32_t> of;  // of each row its aggregate
  double length = 0;     // in rows, whatever the direction; 0: that is not known
};

// Of about four rows each, along strong ties wherever they lie. They are numbered as the walk goes,
// and no row is gathered with one of another chunk.
template <class Index>
Aggregates grow_aggregates(const Csr<Index>& matrix, const Walk& walk, int threads);

// How a level's rows tie along the three directions of its grid.
struct GridTies {
  std::array<double, 3> mean = {};  // |entry| to the next cell of a direction
  bool even = false;                // ties of a row that count are alike in nearly all rows

  // Directions whose ties are strong: errors are smooth along them after a sweep.
  std::array<bool, 3> strong() const;
};

template <class Index>
GridTies grid_ties(const Csr<Index>& matrix, const Grid& grid);

// A grid, and in which directions two cells become one.
struct Halving {
  Grid grid;
  std::array<bool, 3> halved = {};

  Grid coarse() const;
  bool everywhere() const;
};

Aggregates halve(const Halving& halving, int threads);

// The tiles that are left of these, where they hold whole aggregates; else nothing.
std::array<int, 3> halved_tile(const Halving& halving, const std::array<int, 3>& tile);

// Of each step of a tile its step in the halved one.
std::vector<std::uint16_t> halved_steps(const Halving& halving, const std::array<int, 3>& tile);

// What is left of an ordering when tiles hold aggregates for rows: group and lane stay.
Ordering halved_ordering(const Ordering& ordering, const Halving& halving,
                         const std::vector<std::uint16_t>& steps, int threads);

class Members;

// The matrix for the aggregates: P'AP, where P spreads one value over an aggregate, but with ties
// loosened by what P makes them too stiff (over-correction: Braess, Computing 55, 1995). Not if
// some row is not diagonally dominant: P'AP alone is sure to be positive definite then.
template <class Index>
OwnedCsr<std::int32_t> coarse_matrix(const Csr<Index>& matrix, const Aggregates& aggregates,
                                     const Members& members, bool loosen, int threads);

}  // namespace flowos::solve
