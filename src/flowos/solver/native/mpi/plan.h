#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "../chosen.h"
#include "../facts.h"
#include "../generate.h"
#include "../matrix.h"
#include "../ordering.h"
#include "../pivots.h"
#include "../solver.h"
#include "problem.h"

namespace flowos::solve {

// How the whole matrix is ordered, and what becomes of what is dropped.
struct Plan {
  Ordered ordered;
  Dropping dropping;
  Evenness evenness = {};
};

inline Evenness evenness_of_poisson(const Grid& grid) {
  Evenness evenness = {.least = 6, .greatest = 6, .negative = true, .values = {}};
  if (std::ranges::any_of(grid.cells, [](std::int64_t cells) { return cells > 1; }))
    evenness.values = {-1};
  return evenness;
}

inline Dominance dominance_of_poisson(const Grid& grid) {
  double share = 0;
  for (const std::int64_t cells : grid.cells) share += (1 - 1 / static_cast<double>(cells)) / 3;
  return {.greatest = 6, .everywhere = true, .share = share};
}

// As find_grid has it.
inline Grid without_gaps(const Grid& grid) {
  Grid result = grid;
  std::ranges::stable_partition(result.cells, [](std::int64_t cells) { return cells == 1; });
  return result;
}

// What solver.cpp would choose. Every rank makes the same. MatrixError.
inline Plan plan_of(const Problem& problem, const Settings& settings, int lanes, int threads) {
  Plan plan;
  if (problem.grid) {
    const Grid& grid = *problem.grid;
    plan.ordered = takes_bricks(settings)
                       ? ordered_in_bricks(without_gaps(grid), settings, lanes, threads)
                       : ordered_in_grown(poisson(grid, threads).view(), settings, lanes, threads);
    plan.evenness = evenness_of_poisson(grid);
    plan.dropping = dropping_of(settings, dominance_of_poisson(grid), plan.evenness);
    return plan;
  }
  const Csr<std::int32_t> matrix = problem.matrix.view();
  const std::optional<Grid> grid =
      takes_bricks(settings) ? find_grid(matrix, threads) : std::nullopt;
  plan.ordered = grid ? ordered_in_bricks(*grid, settings, lanes, threads)
                      : ordered_in_grown(matrix, settings, lanes, threads);
  const Facts facts = facts_of(matrix, threads);
  plan.evenness = facts.evenness;
  plan.dropping = dropping_of(settings, facts.dominance, facts.evenness);
  return plan;
}

}  // namespace flowos::solve
