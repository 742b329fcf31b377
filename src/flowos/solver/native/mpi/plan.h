#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "../evenness.h"
#include "../generate.h"
#include "../matrix.h"
#include "../ordering.h"
#include "../solver.h"
#include "problem.h"

namespace flowos::solve {

// How the whole matrix is ordered, and how much of what is dropped goes to the diagonal.
struct Plan {
  Ordering order;
  std::string blocks;  // "bricks 8x8x8", "grown 32"
  double relax = 0;
  Evenness evenness = {};
};

inline constexpr int kBrickRows = 512, kGrownRows = 32, kBrickColours = 2;
inline constexpr double kGridRelax = 0.95;  // rows of Poisson's equation add up to 0

inline Plan plan_in_bricks(const Grid& grid, const Settings& settings, int lanes, int threads) {
  const int rows = settings.block_rows ? settings.block_rows : kBrickRows;
  const std::array<int, 3> brick = fit_brick(grid, rows, lanes);
  return {.order = order_bricks(grid, brick, lanes, threads),
          .blocks = "bricks " + std::to_string(brick[2]) + "x" + std::to_string(brick[1]) + "x" +
                    std::to_string(brick[0])};
}

inline Plan plan_grown(const Csr<std::int32_t>& matrix, const Settings& settings, int lanes,
                       int threads) {
  const int rows = settings.block_rows ? settings.block_rows : kGrownRows;
  return {.order = order_graph(matrix, rows, settings.colours, lanes, threads),
          .blocks = "grown " + std::to_string(rows)};
}

inline Evenness evenness_of_poisson(const Grid& grid) {
  Evenness evenness = {};
  for (const std::int64_t cells : grid.cells)
    if (cells > 1) evenness.greatest += 2;
  evenness.least = evenness.greatest;
  if (evenness.greatest > 0) evenness.values = {-1};
  return evenness;
}

// Every rank makes the same. Bricks have two colours: where more are wanted, or where there is no
// grid, blocks are grown, for which the whole matrix must be here. MatrixError.
inline Plan plan_of(const Problem& problem, const Settings& settings, int lanes, int threads) {
  std::optional<Grid> grid = problem.grid;
  if (!grid) grid = find_grid(problem.matrix.view(), threads);
  Plan plan;
  if (grid && settings.colours <= kBrickColours)
    plan = plan_in_bricks(*grid, settings, lanes, threads);
  else if (problem.grid)
    plan = plan_grown(poisson(*problem.grid, threads).view(), settings, lanes, threads);
  else
    plan = plan_grown(problem.matrix.view(), settings, lanes, threads);
  plan.evenness = problem.grid ? evenness_of_poisson(*problem.grid)
                               : evenness_of(problem.matrix.view(), threads);
  plan.relax = settings.relax >= 0 ? settings.relax : problem.grid ? kGridRelax : 0;
  return plan;
}

}  // namespace flowos::solve
