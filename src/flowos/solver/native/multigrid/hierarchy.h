#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/storage.h"
#include "matrix/grid.h"
#include "matrix/matrix.h"
#include "matrix/properties.h"
#include "multigrid/aggregates.h"
#include "multigrid/kernels.h"
#include "multigrid/stencil.h"
#include "multigrid/transfer.h"
#include "ordering/ordering.h"
#include "ordering/traversal.h"
#include "simd/lanes_matrix.h"

namespace flowos::solve {

// How a level's vectors become those of the next coarser one, and back.
struct Transfer {
  // Where aggregates lie in blocks, which then keep their groups and lanes; else 0 and empty.
  int coarse_steps = 0;
  std::vector<std::uint16_t> step;
  // Else of each aggregate its place, and those of its rows.
  Line<std::int32_t> coarse_place;
  std::vector<std::int32_t> starts;
  Raw<std::int32_t> places;

  Within within() const { return {.coarse_steps = coarse_steps, .step = step.data()}; }
};

struct LevelBytes {
  std::int64_t in_iteration = 0, stored = 0;
};

// A level of a hierarchy: its matrix, how it is gone on from, and the vectors of a cycle.
template <class T>
struct Level {
  std::vector<std::int64_t> colour_starts;
  std::variant<LanesMatrix<T>, StencilLanes<T>> matrix;
  Transfer down;
  Spread<T> spread;          // where aggregates lie in blocks
  Held held;                 // which groups are computed here
  Line<T> r, y;              // right-hand side and result; padding of held groups: 0 after a sweep
  Line<T> between;           // residual and correction, where aggregates lie anywhere
  std::vector<double> sums;  // y'D y of each group, after the forward sweep

  std::int64_t groups() const { return colour_starts.back(); }
  bool even() const { return std::holds_alternative<StencilLanes<T>>(matrix); }
  LevelView<T> view() const;
  std::int64_t entries() const;  // that are stored, with those that are 0
  LevelBytes bytes(bool finest) const;
  // That a cycle does on this level, and conjugate gradients on the finest. As kernels_body.h does
  // them: it goes over each half of the matrix twice, and of the finest level over the lower one
  // thrice (even levels: over both), with 2 for each entry. At each place: forward 3, restriction
  // 1, backward 2; on the finest level forward_update 7, backward_keep 4 (even levels: 2),
  // direction 9.
  std::int64_t flops(bool finest) const {
    const std::int64_t halves = !finest ? 4 : even() ? 6 : 5;
    const std::int64_t at_place = !finest ? 6 : even() ? 19 : 21;
    return halves * entries() + at_place * lines() * kLanes<T>;
  }

 private:
  std::int64_t lines() const;  // steps of the groups that are held
};

// The coarsest of all: so few rows that they are solved by the inverse. Places are rows.
template <class T>
struct Dense {
  std::int64_t rows = 0;  // with padding to whole lanes; 0: there is none
  Line<T> inverse, r, y;
};

// Which groups of a level are computed here, given how the level before it goes on to it (null: it
// is the finest). Called for each level once, the finest first.
using Holding = std::function<Held(const Ordering&, const Transfer*)>;

// The levels of a matrix, finest first.
template <class T>
class Hierarchy {
 public:
  template <class Index>
  Hierarchy(const Csr<Index>& matrix, const std::optional<Grid>& grid, const Dominance& dominance,
            int threads, Holding holding = {});

  // Of the matrix that is this stencil.
  Hierarchy(const Stencil& stencil, const Dominance& dominance, int threads, Holding holding);

  // What the matrix is multiplied by, so that its entries are of the size of 1.
  double scale() const { return scale_; }

  std::vector<Level<T>> levels;
  Dense<T> dense;

  // Of the finest level.
  Ordering ordering;
  std::string blocks;
  std::vector<std::int64_t> rows;  // of all levels
  double order_seconds = 0, store_seconds = 0, coarse_seconds = 0;

 private:
  // The level to be made next.
  struct Next {
    Ordering ordering;
    Walk walk;                 // what the ordering and aggregates go by, if it is no grid
    std::optional<Grid> grid;  // its rows are cells of this, with even ties
  };

  Hierarchy(const Dominance& dominance, int threads, Holding holding);
  // The matrix may have no rows where the stencil is known.
  template <class Index>
  void make(const Csr<Index>& matrix, const std::optional<Grid>& grid,
            std::optional<Stencil> stencil);
  template <class Index>
  void order(const Csr<Index>& matrix, Next& next);
  bool keep_tiles(const Halving& halving, const Next& next, Level<T>& level, Next& coarse);
  Line<T> vector_of(const Ordering& ordering) const;
  Line<T> zeros_of(const Ordering& ordering, const Held& held) const;
  template <class Matrix>
  Level<T> level_of(const Matrix& matrix, const Next& next);
  void add(Level<T> level, Next& next, Next coarse);
  template <class Index>
  OwnedCsr<std::int32_t> add_even_levels(const Csr<Index>& matrix, Stencil stencil, Next& next);
  template <class Index>
  Aggregates aggregates_of(const Csr<Index>& matrix, const Next& next, Level<T>& level,
                           Next& coarse);
  template <class Index>
  OwnedCsr<std::int32_t> add_level(const Csr<Index>& matrix, Level<T> level, Next& next);
  void add_dense(const Csr<std::int32_t>& matrix);

  double scale_;
  bool dominant_;  // see coarse_matrix()
  int threads_;
  Holding holding_;
};

}  // namespace flowos::solve
