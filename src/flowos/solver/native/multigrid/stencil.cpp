#include "multigrid/stencil.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/at_once.h"
#include "base/for_each.h"
#include "base/storage.h"
#include "matrix/grid.h"
#include "matrix/matrix.h"
#include "matrix/repeated_rows.h"
#include "multigrid/aggregates.h"
#include "ordering/ordering.h"
#include "simd/even_lanes.h"
#include "simd/lanes_matrix.h"

namespace flowos::solve {
namespace {

constexpr std::int64_t kRun = 1 << 14;

// Neighbours of a cell are numbered: before it and after it along z, along y, along x.
bool has_neighbour(const Grid& grid, const Cell& cell, std::size_t number) {
  const std::size_t d = number / 2;
  return number % 2 == 0 ? cell[d] > 0 : cell[d] + 1 < grid.cells[d];
}

// Whether a row is the one that the stencil has for its cell.
template <class Index>
class SameRow {
 public:
  SameRow(const Csr<Index>& matrix, const Stencil& stencil, double diagonal)
      : matrix_(matrix),
        stencil_(stencil),
        strides_(strides_of(stencil.grid)),
        diagonal_(diagonal) {}

  bool operator()(std::int64_t row, const Cell& cell) const {
    unsigned wanted = kDiagonal, seen = 0;
    for (std::size_t i = 0; i < 6; ++i) {
      if (has_neighbour(stencil_.grid, cell, i)) wanted |= 1U << i;
    }
    for (Index k = matrix_.starts[row]; k < matrix_.starts[row + 1]; ++k) {
      const unsigned bit = bit_of(matrix_.columns[k] - row, matrix_.values[k]);
      if (bit == 0 || (seen & bit) != 0) return false;
      seen |= bit;
    }
    return seen == wanted;
  }

 private:
  static constexpr unsigned kDiagonal = 1U << 6;

  // 0: it is none of the stencil.
  unsigned bit_of(std::int64_t away, double value) const {
    if (away == 0) return value == diagonal_ ? kDiagonal : 0;
    for (std::size_t d = 3; d-- > 0;) {
      if (stencil_.grid.cells[d] == 1 || (away != strides_[d] && away != -strides_[d])) continue;
      return value == -stencil_.ties[d] ? 1U << (2 * d + (away > 0 ? 1 : 0)) : 0;
    }
    return 0;
  }

  const Csr<Index>& matrix_;
  const Stencil& stencil_;
  Cell strides_;
  double diagonal_;
};

}  // namespace

double Stencil::diagonal(const Cell& cell) const {
  double sum = own;
  for (std::size_t i = 0; i < 6; ++i) {
    sum += has_neighbour(grid, cell, i) ? ties[i / 2] : walls[i / 2];
  }
  return sum;
}

bool Stencil::halves(const Halving& halving) const {
  for (std::size_t d = 0; d < 3; ++d) {
    if (halving.halved[d] && grid.cells[d] % 2 != 0) return false;
  }
  return true;
}

// Between two aggregates there are as many ties as cells on a side, and the whole difference of
// their values falls over them; in truth it falls over those inside, too (stiffness() of
// galerkin.cpp, for cells that are all alike).
Stencil Stencil::halved(const Halving& halving, bool loosen) const {
  double cells = 1, inside = 0, directions = 0;
  for (std::size_t d = 0; d < 3; ++d) {
    if (!halving.halved[d]) continue;
    cells *= 2;
    inside += ties[d];
    ++directions;
  }
  Stencil result{.grid = halving.coarse(), .ties = {}, .walls = {}, .own = own * cells};
  for (std::size_t d = 0; d < 3; ++d) {
    const double side = halving.halved[d] ? cells / 2 : cells;
    result.walls[d] = walls[d] * side;
    if (result.grid.cells[d] == 1) continue;
    result.ties[d] = ties[d] * side;
    if (loosen && halving.halved[d]) {
      result.ties[d] /= 1 + std::min(1.0, ties[d] * directions / inside);
    }
  }
  return result;
}

namespace {

// Calls put(column, value) for the entries of a row, from left to right.
template <class Put>
void each_entry(const Stencil& stencil, std::int64_t row, const Cell& cell, const Put& put) {
  const Cell strides = strides_of(stencil.grid);
  for (const std::size_t d : {0U, 1U, 2U}) {
    if (has_neighbour(stencil.grid, cell, 2 * d)) put(row - strides[d], -stencil.ties[d]);
  }
  put(row, stencil.diagonal(cell));
  for (const std::size_t d : {2U, 1U, 0U}) {
    if (has_neighbour(stencil.grid, cell, 2 * d + 1)) put(row + strides[d], -stencil.ties[d]);
  }
}

}  // namespace

OwnedCsr<std::int32_t> Stencil::matrix(int threads) const {
  const std::int64_t rows = grid.cells[0] * grid.cells[1] * grid.cells[2];
  OwnedCsr<std::int32_t> result;
  result.starts.reserve(at(rows + 1));
  result.starts.push_back(0);
  each_cell(grid, 0, rows, [&](std::int64_t row, const Cell& cell) {
    std::int32_t entries = 0;
    each_entry(*this, row, cell, [&](std::int64_t, double) { ++entries; });
    result.starts.push_back(result.starts.back() + entries);
  });
  result.columns.resize(at(result.starts.back()));
  result.values.resize(at(result.starts.back()));
  for_runs(rows, kRun, threads, [&](std::int64_t first, std::int64_t past) {
    std::size_t k = at(result.starts[at(first)]);
    each_cell(grid, first, past, [&](std::int64_t row, const Cell& cell) {
      each_entry(*this, row, cell, [&](std::int64_t column, double value) {
        result.columns[k] = static_cast<std::int32_t>(column);
        result.values[k++] = value;
      });
    });
  });
  return result;
}

// The first row has a next one in every direction: it has the ties of all. A row whose cell has
// the same neighbours as the one before it is only compared with that.
template <class Index>
std::optional<Stencil> stencil_of(const Csr<Index>& matrix, const Grid& grid, int threads) {
  const double diagonal = entry_of(matrix, 0, 0);
  Stencil stencil{.grid = grid, .ties = {}, .walls = {}, .own = diagonal};
  for (std::size_t d = 0; d < 3; ++d) {
    if (grid.cells[d] == 1) continue;
    const double tie = -entry_of(matrix, 0, strides_of(grid)[d]);
    if (!(tie > 0)) return std::nullopt;
    stencil.ties[d] = stencil.walls[d] = tie;
    stencil.own -= 2 * tie;
  }
  const SameRow<Index> same(matrix, stencil, diagonal);
  std::atomic<bool> all = true;
  for_runs(matrix.rows, kRun, threads, [&](std::int64_t first, std::int64_t past) {
    if (!all) return;
    bool these = true;
    each_cell(grid, first, past, [&](std::int64_t row, const Cell& cell) {
      const bool inner = row > first && cell[2] > 1 && cell[2] + 1 < grid.cells[2];
      these = these && ((inner && repeats_row_before(matrix, row)) || same(row, cell));
    });
    if (!these) all = false;
  });
  if (!all) return std::nullopt;
  return stencil;
}

namespace {

// Writes the entries of the groups of a part, step by step.
template <class T>
class StencilWriter {
 public:
  using Part = typename EvenLanes<T>::Part;
  using Lanes = std::array<std::int32_t, kLanes<T>>;  // of each a place; -1: none

  StencilWriter(const Stencil& stencil, const Ordering& ordering, double scale, Part& lower,
                Part& upper)
      : stencil_(stencil),
        ordering_(ordering),
        strides_(strides_of(stencil.grid)),
        tile_{.cells = {ordering.tile[0], ordering.tile[1], ordering.tile[2]}},
        zeros_(static_cast<std::int32_t>(ordering.places())),
        lower_(lower),
        upper_(upper) {
    for (std::size_t d = 0; d < 3; ++d) values_[d] = static_cast<T>(-stencil.ties[d] * scale);
  }

  void write_group(std::int64_t group) {
    lower_.begin_group();
    upper_.begin_group();
    std::int64_t place = group * ordering_.group_places();
    const auto first = ordering_.row.begin() + place;
    const bool whole = std::none_of(first, first + ordering_.group_places(),
                                    [](std::int32_t row) { return row < 0; });
    each_cell(tile_, 0, ordering_.block_rows, [&](std::int64_t, const Cell& cell) {
      lower_.begin_step();
      upper_.begin_step();
      write_step(place, cell, whole);
      place += kLanes<T>;
    });
    lower_.end_group();
    upper_.end_group();
  }

  void skip_group() {
    for (Part* side : {&lower_, &upper_}) {
      side->begin_group();
      for (int step = 0; step < ordering_.block_rows; ++step) side->begin_step();
      side->end_group();
    }
  }

  void end() {
    lower_.end();
    upper_.end();
  }

 private:
  // cell: of the tile. Where all lanes have the cells around it, they lie side by side.
  void write_step(std::int64_t place, const Cell& cell, bool whole) {
    for (std::size_t d = 0; d < 3; ++d) {
      if (stencil_.grid.cells[d] == 1) continue;
      if (whole && cell[d] > 0 && cell[d] + 1 < tile_.cells[d]) {
        const auto away = strides_of(tile_)[d] * kLanes<T>;
        lower_.add(static_cast<std::int32_t>(place - away), values_[d]);
        upper_.add(static_cast<std::int32_t>(place + away), values_[d]);
        continue;
      }
      std::array<Lanes, 2> neighbours;
      find(place, d, neighbours);
      for (const Lanes& places : neighbours) write(place, places, values_[d]);
    }
  }

  using Two = std::array<std::int32_t, 2>;

  // The neighbours of all lanes along a direction, in two lists such that those of a list lie side
  // by side: where one lane is the other's mirror image, the one before it is the other's next.
  void find(std::int64_t place, std::size_t d, std::array<Lanes, 2>& neighbours) const {
    Two bases = {kUnknown, kUnknown};
    for (std::size_t lane = 0; lane < kLanes<T>; ++lane) {
      Two two = around(ordering_.row[at(place) + lane], d);
      if (is_mirrored(two, static_cast<std::int32_t>(lane), bases)) std::swap(two[0], two[1]);
      for (std::size_t i = 0; i < 2; ++i) {
        neighbours[i][lane] = two[i];
        if (bases[i] != kUnknown || two[i] < 0) continue;
        bases[i] = two[i] - static_cast<std::int32_t>(lane);
      }
    }
  }

  // The places of those before and after a row along a direction; -1: there is none.
  Two around(std::int32_t row, std::size_t d) const {
    Two two = {-1, -1};
    if (row < 0) return two;
    const std::int64_t cell = cell_of(stencil_.grid, row)[d];
    if (cell > 0) two[0] = ordering_.place[at(row - strides_[d])];
    if (cell + 1 < stencil_.grid.cells[d]) two[1] = ordering_.place[at(row + strides_[d])];
    return two;
  }

  static bool is_mirrored(const Two& two, std::int32_t lane, const Two& bases) {
    const auto lies = [&](std::size_t i, std::size_t list) {
      return two[i] >= 0 && two[i] - lane == bases[list];
    };
    return !lies(0, 0) && !lies(1, 1) && (lies(0, 1) || lies(1, 0));
  }

  void write(std::int64_t place, const Lanes& places, T value) {
    if (side_by_side(places)) {
      (places[0] < place ? lower_ : upper_).add(places[0], value);
      return;
    }
    for (Part* side : {&lower_, &upper_}) {
      Lanes gathered;
      bool any = false;
      for (std::size_t lane = 0; lane < kLanes<T>; ++lane) {
        const std::int64_t own = place + static_cast<std::int64_t>(lane);
        const bool here = places[lane] >= 0 && (places[lane] < own) == (side == &lower_);
        gathered[lane] = here ? places[lane] : zeros_ + static_cast<std::int32_t>(lane);
        any = any || here;
      }
      if (any) side->add_gathered(gathered, value);
    }
  }

  static bool side_by_side(const Lanes& places) {
    if (places[0] < 0 || places[0] % kLanes<T> != 0) return false;
    for (std::size_t lane = 1; lane < kLanes<T>; ++lane) {
      if (places[lane] != places[0] + static_cast<std::int32_t>(lane)) return false;
    }
    return true;
  }

  static constexpr std::int32_t kUnknown = -1 - kLanes<T>;

  const Stencil& stencil_;
  const Ordering& ordering_;
  Cell strides_;
  Grid tile_;
  std::int32_t zeros_;
  std::array<T, 3> values_ = {};
  Part& lower_;
  Part& upper_;
};

template <class T>
Line<T> inverse_of(const Stencil& stencil, const Ordering& ordering, double scale, int threads) {
  if (stencil.alike()) {
    return Line<T>(kLanes<T>, static_cast<T>(1 / (stencil.diagonal({0, 0, 0}) * scale)));
  }
  Line<T> result(at(ordering.places()));
  for_runs(ordering.places(), kRun, threads, [&](std::int64_t first, std::int64_t past) {
    for (std::int64_t place = first; place < past; ++place) {
      const std::int32_t row = ordering.row[at(place)];
      result[at(place)] =
          row < 0 ? T(1)
                  : static_cast<T>(1 / (stencil.diagonal(cell_of(stencil.grid, row)) * scale));
    }
  });
  return result;
}

}  // namespace

template <class T>
StencilLanes<T>::StencilLanes(const Stencil& stencil, const Ordering& ordering, double scale,
                              int threads, const Held& held)
    : steps_(ordering.block_rows),
      alike_(stencil.alike()),
      inverse_(inverse_of<T>(stencil, ordering, scale, threads)) {
  const std::int64_t groups = ordering.groups();
  const int count = static_cast<int>(std::clamp<std::int64_t>(groups, 1, threads));
  std::vector<typename EvenLanes<T>::Part> lower_parts(at(count)), upper_parts(at(count));
  at_once(count, [&](int i) {
    constexpr std::int64_t kEntries = 4;  // of a step on one side; seldom more
    const std::int64_t first = groups * i / count, past = groups * (i + 1) / count;
    for (auto* parts : {&lower_parts, &upper_parts}) {
      (*parts)[at(i)].reserve(past - first, steps_, kEntries);
    }
    StencilWriter<T> writer(stencil, ordering, scale, lower_parts[at(i)], upper_parts[at(i)]);
    for (std::int64_t group = first; group < past; ++group) {
      if (holds(held, group)) {
        writer.write_group(group);
      } else {
        writer.skip_group();
      }
    }
    writer.end();
  });
  lower_ = EvenLanes<T>(std::move(lower_parts), steps_);
  upper_ = EvenLanes<T>(std::move(upper_parts), steps_);
}

template class StencilLanes<float>;
template class StencilLanes<double>;
template std::optional<Stencil> stencil_of(const Csr<std::int32_t>&, const Grid&, int);
template std::optional<Stencil> stencil_of(const Csr<std::int64_t>&, const Grid&, int);

}  // namespace flowos::solve
