#include "multigrid/hierarchy.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/for_each.h"
#include "base/storage.h"
#include "matrix/grid.h"
#include "matrix/matrix.h"
#include "matrix/properties.h"
#include "multigrid/aggregates.h"
#include "multigrid/members.h"
#include "multigrid/stencil.h"
#include "multigrid/transfer.h"
#include "ordering/groups.h"
#include "ordering/ordering.h"
#include "simd/lanes_matrix.h"
#include "threads/team.h"

namespace flowos::solve {
namespace {

constexpr std::int64_t kDenseRows = 128;
constexpr int kMinSteps = 8;    // of tiles that are worth keeping
constexpr int kTileRows = 512;  // at most
constexpr double kShrinks = 0.7;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Tiles that can be halved often, but so small that all lanes have some.
std::array<int, 3> tile_for(const Grid& grid, int lanes) {
  const std::int64_t rows = grid.cells[0] * grid.cells[1] * grid.cells[2];
  std::array<int, 3> tile = {1, 1, 1};
  for (bool grown = true; grown;) {
    grown = false;
    for (std::size_t d = 3; d-- > 0;) {
      const std::int64_t block = std::int64_t{2} * tile[0] * tile[1] * tile[2];
      if (std::int64_t{2} * tile[d] > grid.cells[d] || block > kTileRows ||
          (block > kMinSteps && rows / block < std::int64_t{4} * lanes)) {
        continue;
      }
      tile[d] *= 2;
      grown = true;
    }
  }
  return tile;
}

// The inverse of a small matrix, by its Cholesky factors. What is singular in it stays 0.
class Inverse {
 public:
  explicit Inverse(const Csr<std::int32_t>& matrix) : n_(at(matrix.rows)), a_(n_ * n_) {
    for (std::size_t row = 0; row < n_; ++row) {
      for (std::int32_t k = matrix.starts[row]; k < matrix.starts[row + 1]; ++k) {
        a(row, at(matrix.columns[k])) += matrix.values[k];
      }
    }
    for (std::size_t j = 0; j < n_; ++j) factor(j);
  }

  std::vector<double> column(std::size_t j) const {
    std::vector<double> x(n_);
    x[j] = 1;
    for (std::size_t i = j; i < n_; ++i) {
      for (std::size_t k = j; k < i; ++k) x[i] -= a(i, k) * x[k];
      x[i] = over(x[i], a(i, i));
    }
    for (std::size_t i = n_; i-- > 0;) {
      for (std::size_t k = i + 1; k < n_; ++k) x[i] -= a(k, i) * x[k];
      x[i] = over(x[i], a(i, i));
    }
    return x;
  }

 private:
  static double over(double value, double pivot) { return pivot == 0 ? 0 : value / pivot; }

  // Column j of L, which takes the place of the lower triangle.
  void factor(std::size_t j) {
    constexpr double kSingular = 1e-12;
    const double before = a(j, j);
    for (std::size_t k = 0; k < j; ++k) a(j, j) -= a(j, k) * a(j, k);
    const double pivot = a(j, j) > kSingular * before ? std::sqrt(a(j, j)) : 0;
    a(j, j) = pivot;
    for (std::size_t i = j + 1; i < n_; ++i) {
      for (std::size_t k = 0; k < j; ++k) a(i, j) -= a(i, k) * a(j, k);
      a(i, j) = over(a(i, j), pivot);
    }
  }

  double& a(std::size_t row, std::size_t column) { return a_[row * n_ + column]; }
  double a(std::size_t row, std::size_t column) const { return a_[row * n_ + column]; }

  std::size_t n_;
  std::vector<double> a_;
};

Transfer placed_anew(const Ordering& fine, const Members& members, Line<std::int32_t> coarse_place,
                     int threads) {
  constexpr std::int64_t kRun = 1 << 14;
  Transfer result;
  result.coarse_place = std::move(coarse_place);
  result.starts = members.starts();
  result.places.resize(at(fine.rows));
  for_runs(fine.rows, kRun, threads, [&](std::int64_t first, std::int64_t past) {
    for (std::int64_t i = first; i < past; ++i) {
      result.places[at(i)] = fine.place[at(members.rows()[at(i)])];
    }
  });
  return result;
}

// In each direction whose ties are strong.
Halving halving_of(const Grid& grid, const GridTies& ties) {
  Halving halving{.grid = grid, .halved = ties.strong()};
  for (std::size_t d = 0; d < 3; ++d) {
    halving.halved[d] = halving.halved[d] && grid.cells[d] > 1;
  }
  return halving;
}

// How a matrix of this kind is stored.
template <class T, class Matrix>
using StoredAs =
    std::conditional_t<std::is_same_v<Matrix, Stencil>, StencilLanes<T>, LanesMatrix<T>>;

}  // namespace

template <class T>
template <class Index>
void Hierarchy<T>::order(const Csr<Index>& matrix, Next& next) {
  if (next.grid) {
    const auto tile = tile_for(*next.grid, kLanes<T>);
    next.ordering = order_tiles(*next.grid, tile, kLanes<T>, threads_);
  } else {
    next.walk = walk_of(matrix, threads_);
    next.ordering = order_points(matrix, next.walk, kLanes<T>, threads_);
  }
}

// Corrections come from the coarse vector, or from the rows that they were spread over.
template <class T>
LevelView<T> Level<T>::view() const {
  LevelView<T> result = std::visit([](const auto& stored) { return stored.view(); }, matrix);
  result.spread = down.coarse_steps > 0 ? spread.groups() : result.lower;
  return result;
}

template <class T>
std::int64_t Level<T>::entries() const {
  return std::visit([](const auto& stored) { return stored.entries(); }, matrix);
}

template <class T>
std::int64_t Level<T>::lines() const {
  const std::int64_t held_groups =
      held.empty() ? groups() : groups() - std::count(held.begin(), held.end(), 0);
  return held_groups * view().steps;
}

// The sweeps read the halves of the matrix, the diagonal and the vectors, and what they write
// counts twice where it was not read before: of the finest level r, q, z, x and p, and u where
// there is one, else of right-hand side and result.
template <class T>
LevelBytes Level<T>::bytes(bool finest) const {
  const auto line = lines() * static_cast<std::int64_t>(kLanes<T> * sizeof(T));
  std::int64_t vectors = finest ? 15 : 8, of_lower = finest ? 3 : 2, of_upper = 2, kept = 2;
  if (!view().alike) {
    vectors += finest ? 3 : 2;
    ++kept;
  }
  if (!between.empty()) {
    vectors += 6;
    ++kept;
  }
  if (finest) (even() ? of_upper : vectors) += even() ? 1 : 3;
  const auto [lower, upper] = std::visit(
      [](const auto& stored) { return std::pair(stored.lower_bytes(), stored.upper_bytes()); },
      matrix);
  return {.in_iteration = of_lower * lower + of_upper * upper + spread.bytes() + vectors * line,
          .stored = lower + upper + spread.bytes() + kept * line};
}

// With the line of zeros after the last place; what is before that has no values.
template <class T>
Line<T> Hierarchy<T>::vector_of(const Ordering& ordering) const {
  Line<T> result(at(ordering.places() + kLanes<T>));
  std::fill(result.end() - kLanes<T>, result.end(), T(0));
  return result;
}

template <class T>
Line<T> Hierarchy<T>::zeros_of(const Ordering& ordering, const Held& held) const {
  Line<T> result = vector_of(ordering);
  const std::int64_t each = ordering.group_places();
  share_out(0, ordering.groups(), ordering.block_rows, threads_, [&](Groups some) {
    for (std::int64_t g = some.first; g < some.past; ++g) {
      if (!holds(held, g)) continue;
      std::fill(result.begin() + g * each, result.begin() + (g + 1) * each, T(0));
    }
  });
  return result;
}

// A level of a matrix in lanes, which is not gone on from yet. On levels that are even nothing is
// read of the vectors that was not written before.
template <class T>
template <class Matrix>
Level<T> Hierarchy<T>::level_of(const Matrix& matrix, const Next& next) {
  constexpr bool kEven = std::is_same_v<Matrix, Stencil>;
  const double begun = now();
  const Held held =
      holding_ ? holding_(next.ordering, levels.empty() ? nullptr : &levels.back().down) : Held{};
  Level<T> level{.colour_starts = next.ordering.colour_starts,
                 .matrix = StoredAs<T, Matrix>(matrix, next.ordering, scale_, threads_, held),
                 .down = {},
                 .spread = {},
                 .held = held,
                 .r = kEven ? vector_of(next.ordering) : zeros_of(next.ordering, held),
                 .y = kEven ? vector_of(next.ordering) : zeros_of(next.ordering, held),
                 .between = {},
                 .sums = std::vector<double>(at(next.ordering.groups()))};
  if (levels.empty()) store_seconds = now() - begun;
  return level;
}

// Whether the tiles hold whole aggregates, and enough of them: then the next level has the same
// groups and lanes.
template <class T>
bool Hierarchy<T>::keep_tiles(const Halving& halving, const Next& next, Level<T>& level,
                              Next& coarse) {
  const std::array<int, 3> tile = halved_tile(halving, next.ordering.tile);
  const int steps = tile[0] * tile[1] * tile[2];
  const auto [z, y, x] = halving.coarse().cells;
  if (steps < kMinSteps || z * y * x <= kDenseRows) return false;
  level.down.coarse_steps = steps;
  level.down.step = halved_steps(halving, next.ordering.tile);
  level.spread = Spread<T>(level.view(), next.ordering.groups(), level.down.within(), threads_);
  coarse.ordering = halved_ordering(next.ordering, halving, level.down.step, threads_);
  return true;
}

template <class T>
void Hierarchy<T>::add(Level<T> level, Next& next, Next coarse) {
  rows.push_back(next.ordering.rows);
  levels.push_back(std::move(level));
  if (levels.size() == 1) ordering = std::move(next.ordering);
  next = std::move(coarse);
}

// As long as all cells are alike, a level is one stencil.
template <class T>
template <class Index>
OwnedCsr<std::int32_t> Hierarchy<T>::add_even_levels(const Csr<Index>& matrix, Stencil stencil,
                                                     Next& next) {
  while (true) {
    Level<T> level = level_of(stencil, next);
    const Halving halving = halving_of(stencil.grid, stencil.grid_ties());
    Next coarse;
    coarse.grid = halving.coarse();
    if (!stencil.halves(halving) || !keep_tiles(halving, next, level, coarse)) {
      if (levels.empty() && matrix.rows > 0) return add_level(matrix, std::move(level), next);
      return add_level(stencil.matrix(threads_).view(), std::move(level), next);
    }
    stencil = stencil.halved(halving, dominant_);
    add(std::move(level), next, std::move(coarse));
  }
}

// Cells of a grid whose ties are even become one with their neighbours; else rows are paired.
template <class T>
template <class Index>
Aggregates Hierarchy<T>::aggregates_of(const Csr<Index>& matrix, const Next& next, Level<T>& level,
                                       Next& coarse) {
  const GridTies ties = next.grid ? grid_ties(matrix, *next.grid) : GridTies{};
  if (!next.grid) return grow_aggregates(matrix, next.walk, threads_);
  if (!ties.even) return grow_aggregates(matrix, walk_of(matrix, threads_), threads_);
  const Halving halving = halving_of(*next.grid, ties);
  coarse.grid = halving.coarse();
  keep_tiles(halving, next, level, coarse);
  return halve(halving, threads_);
}

template <class T>
template <class Index>
OwnedCsr<std::int32_t> Hierarchy<T>::add_level(const Csr<Index>& matrix, Level<T> level,
                                               Next& next) {
  Next coarse;
  const Aggregates aggregates = aggregates_of(matrix, next, level, coarse);
  OwnedCsr<std::int32_t> product;
  if (static_cast<double>(aggregates.count) < kShrinks * static_cast<double>(matrix.rows)) {
    const Members members(aggregates, threads_);
    product = coarse_matrix(matrix, aggregates, members, dominant_, threads_);
    if (level.down.coarse_steps == 0) {
      Line<std::int32_t> same(at(std::min(aggregates.count, kDenseRows)));
      std::iota(same.begin(), same.end(), 0);
      if (aggregates.count > kDenseRows) order(product.view(), coarse);
      level.down =
          placed_anew(next.ordering, members,
                      aggregates.count > kDenseRows ? coarse.ordering.place : same, threads_);
    }
  }
  if (level.down.coarse_steps == 0) {
    level.between = zeros_of(next.ordering, level.held);
  }
  add(std::move(level), next, std::move(coarse));
  return product;
}

template <class T>
void Hierarchy<T>::add_dense(const Csr<std::int32_t>& matrix) {
  constexpr std::int64_t lanes = kLanes<T>;
  rows.push_back(matrix.rows);
  dense.rows = (matrix.rows + lanes - 1) / lanes * lanes;
  dense.inverse = Line<T>(at(dense.rows * dense.rows), T(0));
  dense.r = Line<T>(at(dense.rows), T(0));
  dense.y = Line<T>(at(dense.rows), T(0));
  const Inverse inverse(matrix);
  for (std::int64_t j = 0; j < matrix.rows; ++j) {
    const std::vector<double> column = inverse.column(at(j));
    for (std::size_t i = 0; i < column.size(); ++i) {
      dense.inverse[at(j * dense.rows) + i] = static_cast<T>(column[i] / scale_);
    }
  }
}

template <class T>
Hierarchy<T>::Hierarchy(const Dominance& dominance, int threads, Holding holding)
    : scale_(std::ldexp(1.0, -std::ilogb(dominance.max_diagonal))),
      dominant_(dominance.everywhere),
      threads_(threads),
      holding_(std::move(holding)) {}

template <class T>
template <class Index>
Hierarchy<T>::Hierarchy(const Csr<Index>& matrix, const std::optional<Grid>& grid,
                        const Dominance& dominance, int threads, Holding holding)
    : Hierarchy(dominance, threads, std::move(holding)) {
  make(matrix, grid, std::nullopt);
}

template <class T>
Hierarchy<T>::Hierarchy(const Stencil& stencil, const Dominance& dominance, int threads,
                        Holding holding)
    : Hierarchy(dominance, threads, std::move(holding)) {
  make(Csr<std::int32_t>{}, stencil.grid, stencil);
}

template <class T>
template <class Index>
void Hierarchy<T>::make(const Csr<Index>& matrix, const std::optional<Grid>& grid,
                        std::optional<Stencil> stencil) {
  const double begun = now();
  Next next;
  next.grid = grid;
  order(matrix, next);
  order_seconds = now() - begun;
  const auto [z, y, x] = next.ordering.tile;
  blocks = grid ? "tiles " + std::to_string(x) + "x" + std::to_string(y) + "x" + std::to_string(z)
                : "points";
  if (grid && !stencil) stencil = stencil_of(matrix, *grid, threads_);
  OwnedCsr<std::int32_t> coarse = stencil ? add_even_levels(matrix, *stencil, next)
                                          : add_level(matrix, level_of(matrix, next), next);
  while (static_cast<std::int64_t>(coarse.starts.size()) - 1 > kDenseRows) {
    coarse = add_level(coarse.view(), level_of(coarse.view(), next), next);
  }
  if (!coarse.starts.empty()) add_dense(coarse.view());
  coarse_seconds = now() - begun - order_seconds - store_seconds;
}

template struct Level<float>;
template struct Level<double>;
template class Hierarchy<float>;
template class Hierarchy<double>;
#define FLOWOS_FOR(T, Index)                                                      \
  template Hierarchy<T>::Hierarchy(const Csr<Index>&, const std::optional<Grid>&, \
                                   const Dominance&, int, Holding);
FLOWOS_FOR(float, std::int32_t)
FLOWOS_FOR(float, std::int64_t)
FLOWOS_FOR(double, std::int32_t)
FLOWOS_FOR(double, std::int64_t)
#undef FLOWOS_FOR

}  // namespace flowos::solve
