#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "base/storage.h"
#include "matrix/grid.h"
#include "matrix/matrix.h"
#include "multigrid/aggregates.h"
#include "ordering/ordering.h"
#include "simd/even_lanes.h"
#include "simd/lanes_matrix.h"

namespace flowos::solve {

// A matrix on a grid all of whose cells are alike, but for what is around the grid: a few numbers
// tell all of it.
struct Stencil {
  Grid grid;
  // Along each direction: of the entry for the next cell the negative, and what the diagonal has in
  // its stead where there is no next cell.
  std::array<double, 3> ties = {}, walls = {};
  double own = 0;  // what else the diagonal has than ties and walls

  double diagonal(const std::array<std::int64_t, 3>& cell) const;
  bool alike() const { return walls == ties; }  // all of the diagonal

  GridTies grid_ties() const { return {.mean = ties, .even = true}; }
  // Whether the cells that become one are alike too: they are two everywhere.
  bool halves(const Halving& halving) const;
  // What coarse_matrix() makes of it.
  Stencil halved(const Halving& halving, bool loosen) const;
  OwnedCsr<std::int32_t> matrix(int threads) const;
};

// Of the cells of the grid that find_grid() saw; nothing where they are not alike.
template <class Index>
std::optional<Stencil> stencil_of(const Csr<Index>& matrix, const Grid& grid, int threads);

// A stencil times `scale` in the lanes of an ordering of its cells by tiles. Groups that are not
// held have no entries.
template <class T>
class StencilLanes {
 public:
  StencilLanes(const Stencil& stencil, const Ordering& ordering, double scale, int threads,
               const Held& held = {});

  LevelView<T> view() const {
    return {.steps = steps_,
            .lower = lower_.groups(),
            .upper = upper_.groups(),
            .inverse = inverse_.data(),
            .alike = alike_};
  }
  std::int64_t lower_bytes() const { return lower_.bytes(); }
  std::int64_t upper_bytes() const { return upper_.bytes(); }
  std::int64_t entries() const { return lower_.entries() + upper_.entries(); }

 private:
  int steps_;
  bool alike_;
  EvenLanes<T> lower_, upper_;
  Line<T> inverse_;  // of the diagonal; one line, if all of it is alike
};

}  // namespace flowos::solve
