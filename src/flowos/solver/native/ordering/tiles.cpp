// Tiles of a grid, and how they are given to lanes.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "base/for_each.h"
#include "matrix/grid.h"
#include "ordering/ordering.h"
#include "ordering/places.h"

namespace flowos::solve {
namespace {

using Three = std::array<std::int64_t, 3>;  // of z, y and x

std::int64_t product(const Three& three) { return three[0] * three[1] * three[2]; }

std::int64_t over(std::int64_t count, std::int64_t size) { return (count + size - 1) / size; }

// Of tiles that touch at corners: whether a colour has the odd ones of an axis.
std::int64_t odd(std::size_t colour, std::size_t axis) {
  return static_cast<std::int64_t>(colour >> axis & 1U);
}

// How tiles are given to lanes. The grid is cut into equal parts, and each part has `run` lanes.
// Tiles of a group lie at the same place of each part, so that their neighbours do so, too. They
// have one colour if parts are an even number of tiles long, or if every second part is seen in a
// mirror. Where parts have several lanes, those have the next tiles of the colour.
struct Split {
  Three parts = {1, 1, 1};
  Three width = {1, 1, 1};  // tiles of a part, with padding
  int run = 1;
  bool corners = false;               // see Grid
  std::optional<std::size_t> mirror;  // the axis along which odd lanes run backwards

  std::size_t colours() const { return corners ? 8 : 2; }
  // Those of a colour of tiles that touch at corners: every second one along each axis.
  Three tiles_of(std::size_t colour) const {
    Three tiles;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      tiles[axis] = over(width[axis] - odd(colour, axis), 2);
    }
    return tiles;
  }
  std::int64_t groups_of(std::size_t colour) const {
    const std::int64_t half = over(product(width) - static_cast<std::int64_t>(colour), 2);
    return over(corners ? product(tiles_of(colour)) : half, run);
  }
  // Of each colour its first group; then their number. Some may have none.
  std::vector<std::int64_t> starts() const {
    std::vector<std::int64_t> result = {0};
    for (std::size_t colour = 0; colour < colours(); ++colour) {
      result.push_back(result.back() + groups_of(colour));
    }
    return result;
  }
};

// What a split costs: padding, and lanes side by side read what is scattered: a fifth more time.
constexpr std::int64_t kCostOfGroup = 5, kCostOfScattered = 6;
struct Cost {
  std::int64_t time;
  std::int64_t cuts_of_z;  // ranks are cut there
  std::int64_t thinnest;   // parts as thick as can be: fewer of their tiles are at their ends
};

bool less(const Cost& one, const Cost& other) {
  if (one.time != other.time) return one.time < other.time;
  if (one.cuts_of_z != other.cuts_of_z) return one.cuts_of_z < other.cuts_of_z;
  return one.thinnest > other.thinnest;
}

Cost cost_of(const Split& split) {
  std::int64_t thinnest = std::numeric_limits<std::int64_t>::max();
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (split.parts[axis] > 1) thinnest = std::min(thinnest, split.width[axis]);
  }
  return {.time = split.starts().back() * (split.run > 1 ? kCostOfScattered : kCostOfGroup),
          .cuts_of_z = split.parts[0],
          .thinnest = thinnest};
}

class BestSplit {
 public:
  BestSplit(const Three& tiles, bool corners, int lanes) : tiles_(tiles), corners_(corners) {
    for (int run = 1; run <= lanes; ++run) {
      if (lanes % run == 0) try_runs(lanes / run, run);
    }
  }

  const Split& found() const { return best_; }

 private:
  void try_runs(std::int64_t parts, int run) {
    for (std::int64_t z = 1; z <= parts; ++z) {
      for (std::int64_t y = 1; parts % z == 0 && y <= parts / z; ++y) {
        if (parts / z % y == 0) try_parts({z, y, parts / z / y}, run);
      }
    }
  }

  // In each way in which colours agree.
  void try_parts(const Three& parts, int run) {
    Split split{.parts = parts, .width = {}, .run = run, .corners = corners_, .mirror = {}};
    for (std::size_t axis = 0; axis < 3; ++axis) {
      if (parts[axis] > std::max<std::int64_t>(tiles_[axis], 1)) return;
      split.width[axis] = over(tiles_[axis], parts[axis]);
    }
    Split even = split;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      if (parts[axis] > 1) even.width[axis] += even.width[axis] % 2;
    }
    consider(even);
    if (corners_ || even.width == split.width) return;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      if (parts[axis] > 1) continue;
      Split mirrored = split;
      mirrored.width[axis] += mirrored.width[axis] % 2;
      mirrored.mirror = axis;
      consider(mirrored);
    }
  }

  void consider(const Split& split) {
    const Cost cost = cost_of(split);
    if (any_ && !less(cost, cost_)) return;
    any_ = true;
    best_ = split;
    cost_ = cost;
  }

  Three tiles_;
  bool corners_;
  bool any_ = false;
  Split best_;
  Cost cost_{};
};

Three tiles_of(const Grid& grid, const std::array<int, 3>& tile) {
  return {over(grid.cells[0], tile[0]), over(grid.cells[1], tile[1]), over(grid.cells[2], tile[2])};
}

// Writes one tile after the other to its group and lane.
class TileWriter {
 public:
  TileWriter(const Grid& grid, const std::array<int, 3>& tile, const Split& split, Ordering& to)
      : grid_(grid),
        tile_{tile[0], tile[1], tile[2]},
        split_(split),
        starts_(split.starts()),
        to_(to) {}

  void write_group(std::int64_t group) {
    const auto colour = std::upper_bound(starts_.begin(), starts_.end(), group) - 1;
    const std::int64_t first_tile = (group - *colour) * split_.run;
    for (int lane = 0; lane < to_.lanes; ++lane) {
      write(group, lane, tile_at(first_tile + lane % split_.run, at(colour - starts_.begin())));
    }
  }

 private:
  // Where tile number `number` of a colour is in its part. Of each two that follow one another in
  // C order one has the one colour, and one the other.
  std::optional<Three> tile_at(std::int64_t number, std::size_t colour) const {
    if (split_.corners) return corner_tile_at(number, colour);
    const auto [z, y, x] = split_.width;
    for (const std::int64_t tile : {2 * number, 2 * number + 1}) {
      const Three where = {tile / (y * x), tile / x % y, tile % x};
      if (where[0] < z && (where[0] + where[1] + where[2]) % 2 == odd(colour, 0)) return where;
    }
    return std::nullopt;
  }

  std::optional<Three> corner_tile_at(std::int64_t number, std::size_t colour) const {
    const auto [z, y, x] = split_.tiles_of(colour);
    if (number >= z * y * x) return std::nullopt;
    return Three{2 * (number / (y * x)) + odd(colour, 0), 2 * (number / x % y) + odd(colour, 1),
                 2 * (number % x) + odd(colour, 2)};
  }

  // The cell at the beginning of the tile, and the way from one cell to the next, of this lane.
  struct Corner {
    Three cell;
    Three step;
  };

  Corner corner_of(int lane, const Three& tile) const {
    const std::int64_t number = lane / split_.run;
    const Three part = {number / (split_.parts[2] * split_.parts[1]),
                        number / split_.parts[2] % split_.parts[1], number % split_.parts[2]};
    Corner corner{.cell = {}, .step = {1, 1, 1}};
    std::int64_t tiles_before = 0;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      corner.cell[axis] = (part[axis] * split_.width[axis] + tile[axis]) * tile_[axis];
      tiles_before += part[axis] * split_.width[axis];
    }
    if (split_.mirror && tiles_before % 2 != 0) {
      const std::size_t axis = *split_.mirror;
      corner.cell[axis] = split_.width[axis] * tile_[axis] - 1 - corner.cell[axis];
      corner.step[axis] = -1;
    }
    return corner;
  }

  void write(std::int64_t group, int lane, const std::optional<Three>& tile) {
    std::int64_t place = group * to_.block_rows * to_.lanes + lane;
    if (!tile) {
      for (int step = 0; step < to_.block_rows; ++step, place += to_.lanes) to_.row[at(place)] = -1;
      return;
    }
    const Corner corner = corner_of(lane, *tile);
    for (std::int64_t k = 0; k < tile_[0]; ++k) {
      for (std::int64_t j = 0; j < tile_[1]; ++j) {
        const std::int64_t z = corner.cell[0] + k * corner.step[0];
        const std::int64_t y = corner.cell[1] + j * corner.step[1];
        const bool inside = z >= 0 && z < grid_.cells[0] && y >= 0 && y < grid_.cells[1];
        write_line(place, inside ? (z * grid_.cells[1] + y) * grid_.cells[2] : -1, corner);
        place += tile_[2] * to_.lanes;
      }
    }
  }

  // first: the row of the cell at x = 0 of this line; -1: it lies outside.
  void write_line(std::int64_t place, std::int64_t first, const Corner& corner) {
    std::int64_t x = corner.cell[2];
    for (std::int64_t i = 0; i < tile_[2]; ++i, x += corner.step[2], place += to_.lanes) {
      const bool inside = first >= 0 && x >= 0 && x < grid_.cells[2];
      to_.row[at(place)] = inside ? static_cast<std::int32_t>(first + x) : -1;
      if (inside) to_.place[at(first + x)] = static_cast<std::int32_t>(place);
    }
  }

  Grid grid_;
  Three tile_;
  Split split_;
  std::vector<std::int64_t> starts_;
  Ordering& to_;
};

// The tile with which an iteration, times the number of iterations, takes least time.
class FittingTile {
 public:
  FittingTile(const Grid& grid, int lanes) : grid_(grid), lanes_(lanes) {}

  const std::array<int, 3>& found() const { return best_; }

  void consider(const std::array<int, 3>& tile) {
    const Three tiles = tiles_of(grid_, tile);
    const double iterations = iterations_with(tile);
    const double cells = tile[0] * tile[1] * tile[2];
    if (iterations * cells * static_cast<double>(product(tiles)) >= min_time_) return;
    const Cost cost = cost_of(BestSplit(tiles, grid_.corners, lanes_).found());
    const double time = iterations * cells * static_cast<double>(cost.time * lanes_) / kCostOfGroup;
    if (time >= min_time_) return;
    min_time_ = time;
    best_ = tile;
  }

 private:
  // As a factor. They grow by so much per share of a tile's cells that is on one side of it:
  // measured on Poisson 128^3 between tiles of 4^3 and of 8^3.
  double iterations_with(const std::array<int, 3>& tile) const {
    constexpr double kPerFace = 0.27;
    double factor = 1;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      if (grid_.cells[axis] > tile[axis]) factor += 2 * kPerFace / tile[axis];
    }
    return factor;
  }

  Grid grid_;
  int lanes_;
  std::array<int, 3> best_ = {1, 1, 1};
  double min_time_ = std::numeric_limits<double>::infinity();
};

}  // namespace

std::array<int, 3> fit_tile(const Grid& grid, int block_rows, int lanes) {
  FittingTile fitting(grid, lanes);
  const auto longest = [&](std::size_t axis, int rows) {
    return static_cast<int>(std::min<std::int64_t>(grid.cells[axis], rows));
  };
  for (int z = 1; z <= longest(0, block_rows); ++z) {
    for (int y = 1; y <= longest(1, block_rows / z); ++y) {
      for (int x = 1; x <= longest(2, block_rows / z / y); ++x) fitting.consider({z, y, x});
    }
  }
  return fitting.found();
}

Ordering order_tiles(const Grid& grid, const std::array<int, 3>& tile, int lanes, int threads) {
  const Split split = BestSplit(tiles_of(grid, tile), grid.corners, lanes).found();
  Ordering ordering;
  ordering.rows = product(grid.cells);
  ordering.lanes = lanes;
  ordering.block_rows = tile[0] * tile[1] * tile[2];
  ordering.tile = tile;
  ordering.colour_starts = split.starts();
  auto& starts = ordering.colour_starts;
  starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
  check_places(ordering.groups(), ordering.block_rows, lanes);
  ordering.place.resize(at(ordering.rows));
  ordering.row.resize(at(ordering.places()));
  constexpr std::int64_t kRunRows = 1 << 14;
  const std::int64_t run = std::max<std::int64_t>(1, kRunRows / ordering.block_rows / lanes);
  TileWriter writer(grid, tile, split, ordering);
  for_runs(ordering.groups(), run, threads, [&](std::int64_t first, std::int64_t end) {
    for (std::int64_t group = first; group < end; ++group) writer.write_group(group);
  });
  return ordering;
}

}  // namespace flowos::solve
