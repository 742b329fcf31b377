#include "matrix/generate.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/for_each.h"
#include "matrix/assemble.h"
#include "matrix/error.h"
#include "matrix/grid.h"
#include "matrix/matrix.h"

namespace flowos::solve {
namespace {

// The rows of a Poisson matrix, one by one.
class PoissonRows {
 public:
  explicit PoissonRows(const Grid& grid) : grid_(grid) {}

  // Calls visit(column, value) in the order of columns.
  template <class Visit>
  void visit(std::int64_t row, const Visit& visit) const {
    const auto [nz, ny, nx] = grid_.cells;
    const std::int64_t x = row % nx;
    const std::int64_t y = row / nx % ny;
    const std::int64_t z = row / nx / ny;
    if (z > 0) visit(row - nx * ny, -1.0);
    if (y > 0) visit(row - nx, -1.0);
    if (x > 0) visit(row - 1, -1.0);
    visit(row, 6.0);
    if (x + 1 < nx) visit(row + 1, -1.0);
    if (y + 1 < ny) visit(row + nx, -1.0);
    if (z + 1 < nz) visit(row + nx * ny, -1.0);
  }

  // Entries of all rows before this one: 7 each, but for neighbours that there are not.
  std::int64_t before(std::int64_t row) const {
    const auto [nz, ny, nx] = grid_.cells;
    const std::int64_t layer = nx * ny;
    const std::int64_t down = std::min(row, layer);
    const std::int64_t up = std::max<std::int64_t>(0, row - (nz - 1) * layer);
    const std::int64_t front = row / layer * nx + std::min(row % layer, nx);
    const std::int64_t back =
        row / layer * nx + std::max<std::int64_t>(0, row % layer - (ny - 1) * nx);
    const std::int64_t left = row / nx + (row % nx > 0 ? 1 : 0);
    const std::int64_t right = row / nx;
    return 7 * row - down - up - front - back - left - right;
  }

 private:
  Grid grid_;
};

constexpr std::int64_t kRunRows = 1 << 14;

// SplitMix64's finalizer (Steele, Lea and Flood, OOPSLA 2014).
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// What is drawn, so that every draw has numbers of its own.
enum class Draw : std::uint8_t { right, below, strap, strap_x, strap_y, via, window, tie, pad };

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : seed_(mixed(seed)) {}

  // 0 <= . < 1, the same for the same draw and number.
  double roll(Draw draw, std::int64_t number) const {
    const std::uint64_t key = seed_ + static_cast<std::uint64_t>(draw) * 0xd1342543de82ef95;
    return static_cast<double>(mixed(key ^ mixed(static_cast<std::uint64_t>(number))) >> 11) *
           0x1p-53;
  }
  std::int64_t below(std::int64_t most, Draw draw, std::int64_t number) const {
    return static_cast<std::int64_t>(roll(draw, number) * static_cast<double>(most));
  }

 private:
  std::uint64_t seed_;
};

// 2^x, |x| < 1000, by exactly rounded operations alone: what a library's pow() gives differs
// between machines in the last bit. The series of e^(f ln 2), |f| <= 1/2: 1e-14 from what it should
// be.
double power_of_two(double x) {
  constexpr double kLn2 = 0.6931471805599453;
  constexpr int kTerms = 14;
  const auto whole = static_cast<int>(x + (x < 0 ? -0.5 : 0.5));
  const double f = (x - whole) * kLn2;
  double sum = 1;
  for (int term = kTerms; term > 0; --term) sum = 1 + f / term * sum;
  return sum * std::bit_cast<double>(static_cast<std::uint64_t>(whole + 1023) << 52);
}

// The nodes and resistors of power_grid().
class PowerGrid {
 public:
  PowerGrid(std::int64_t side, std::uint64_t seed)
      : side_(side),
        rows_(side * side + side * side / kMeshOfPackage),
        dice_(seed),
        number_(at(rows_)) {
    for (std::int64_t i = 0; i < rows_; ++i) number_[at(i)] = static_cast<std::int32_t>(i);
    for (std::int64_t i = 0; i < rows_; ++i) {
      const std::int64_t other = i + dice_.below(kWindow, Draw::window, i);
      std::swap(number_[at(i)], number_[at(std::min(other, rows_ - 1))]);
    }
  }

  OwnedCsr<std::int32_t> matrix(int threads) {
    entries_.reserve(at(3 * rows_));
    diagonal_.resize(at(rows_));
    for (std::int64_t y = 0; y < side_; ++y) {
      for (std::int64_t x = 0; x < side_; ++x) tie_node(x, y);
    }
    tie_package();
    for (std::int64_t node = 0; node < rows_; ++node) {
      const bool pad = dice_.roll(Draw::pad, node) < kGrounded;
      diagonal_[at(node)] += pad ? 1.0 : 1e-9;
      const std::int32_t row = number_[at(node)];
      entries_.push_back({.row = row, .column = row, .value = diagonal_[at(node)]});
    }
    const std::array<std::vector<Entry>, 1> lists = {std::move(entries_)};
    return assemble(rows_, lists, Mirror::across_diagonal, threads);
  }

 private:
  static constexpr std::int64_t kMeshOfPackage = 3992;  // nodes for each node of the package
  static constexpr double kMissing = 0.045, kStraps = 0.004, kGrounded = 0.001;
  static constexpr std::int64_t kReach = 60, kVias = 12, kWindow = 64;
  static constexpr double kOctaves = 6.643856189774724;  // two decades

  void tie_node(std::int64_t x, std::int64_t y) {
    const std::int64_t node = y * side_ + x;
    if (x + 1 < side_ && dice_.roll(Draw::right, node) >= kMissing) tie(node, node + 1);
    if (y + 1 < side_ && dice_.roll(Draw::below, node) >= kMissing) tie(node, node + side_);
    if (dice_.roll(Draw::strap, node) >= kStraps) return;
    const std::int64_t far_x = x + 1 + dice_.below(kReach, Draw::strap_x, node);
    const std::int64_t far_y = y + dice_.below(kReach, Draw::strap_y, node);
    const std::int64_t far = std::min(far_y, side_ - 1) * side_ + std::min(far_x, side_ - 1);
    if (far != node) tie(node, far);
  }

  void tie_package() {
    const std::int64_t mesh = side_ * side_;
    for (std::int64_t node = mesh; node < rows_; ++node) {
      for (std::int64_t via = 0; via < kVias; ++via) {
        tie(node, dice_.below(mesh, Draw::via, node * kVias + via));
      }
    }
  }

  void tie(std::int64_t one, std::int64_t other) {
    const auto edge = static_cast<std::int64_t>(entries_.size());
    const double conductance = power_of_two(kOctaves * (dice_.roll(Draw::tie, edge) - 0.5));
    diagonal_[at(one)] += conductance;
    diagonal_[at(other)] += conductance;
    entries_.push_back(
        {.row = number_[at(one)], .column = number_[at(other)], .value = -conductance});
  }

  std::int64_t side_;  // of the mesh
  std::int64_t rows_;
  Dice dice_;
  std::vector<std::int32_t> number_;  // of each node
  std::vector<double> diagonal_;      // of each node
  std::vector<Entry> entries_;
};

}  // namespace

OwnedCsr<std::int32_t> poisson_rows(const Grid& grid, std::int64_t first, std::int64_t end,
                                    int threads) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int32_t>::max();
  const PoissonRows rows(grid);
  const std::int64_t before = rows.before(first);
  const std::int64_t entries = rows.before(end) - before;
  const std::int64_t cells = grid.cells[0] * grid.cells[1] * grid.cells[2];
  if (entries > kMax || cells > kMax) {
    throw MatrixError("a grid of " + std::to_string(cells) +
                      " cells is too large: its matrix may have 2147483647 entries");
  }
  OwnedCsr<std::int32_t> made;
  made.starts.resize(at(end - first + 1));
  made.columns.resize(at(entries));
  made.values.resize(at(entries));
  for_runs(end - first, kRunRows, threads, [&](std::int64_t run, std::int64_t run_end) {
    auto next = at(rows.before(first + run) - before);
    for (std::int64_t row = run; row < run_end; ++row) {
      rows.visit(first + row, [&](std::int64_t column, double value) {
        made.columns[next] = static_cast<std::int32_t>(column);
        made.values[next++] = value;
      });
      made.starts[at(row + 1)] = static_cast<std::int32_t>(next);
    }
  });
  return made;
}

OwnedCsr<std::int32_t> poisson(const Grid& grid, int threads) {
  return poisson_rows(grid, 0, grid.cells[0] * grid.cells[1] * grid.cells[2], threads);
}

OwnedCsr<std::int32_t> power_grid(std::int64_t side, std::uint64_t seed, int threads) {
  return PowerGrid(side, seed).matrix(threads);
}

OwnedCsr<std::int32_t> g3like(std::uint64_t seed, int threads) {
  constexpr std::int64_t kSide = 1259;
  return power_grid(kSide, seed, threads);
}

}  // namespace flowos::solve
