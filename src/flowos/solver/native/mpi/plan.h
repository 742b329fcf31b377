#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "krylov/defaults.h"
#include "krylov/solver.h"
#include "matrix/generate.h"
#include "matrix/grid.h"
#include "matrix/matrix.h"
#include "matrix/properties.h"
#include "mpi/problem.h"
#include "multigrid/hierarchy.h"
#include "multigrid/stencil.h"
#include "ordering/ordering.h"

namespace flowos::solve {

// What solver.cpp would choose. Every rank makes the same.
struct Plan {
  std::optional<Grid> grid;  // whose cells are the rows
  Evenness evenness = {};
  Dominance dominance = {};
  bool coarse = false;  // whether there is a coarse correction
};

inline Evenness evenness_of_poisson(const Grid& grid) {
  Evenness evenness = {.min_diagonal = 6, .max_diagonal = 6, .negative = true, .values = {}};
  if (std::ranges::any_of(grid.cells, [](std::int64_t cells) { return cells > 1; }))
    evenness.values = {-1};
  return evenness;
}

inline Dominance dominance_of_poisson(const Grid& grid) {
  double share = 0;
  for (const std::int64_t cells : grid.cells) share += (1 - 1 / static_cast<double>(cells)) / 3;
  return {.max_diagonal = 6, .everywhere = true, .share = share};
}

// As find_grid has it.
inline Grid without_gaps(const Grid& grid) {
  Grid result = grid;
  std::stable_partition(result.cells.begin(), result.cells.end(),
                        [](std::int64_t cells) { return cells == 1; });
  return result;
}

// What poisson() of generate.h makes.
inline Stencil stencil_of_poisson(const Grid& grid) {
  Stencil stencil{.grid = without_gaps(grid), .own = 6};
  for (std::size_t d = 0; d < 3; d++) {
    if (stencil.grid.cells[d] == 1) continue;
    stencil.ties[d] = stencil.walls[d] = 1;
    stencil.own -= 2;
  }
  return stencil;
}

inline Plan plan_of(const Problem& problem, const Settings& settings, int threads) {
  const auto wanted = [&](bool pays) {
    return settings.coarse == Coarse::aggregates || (settings.coarse == Coarse::automatic && pays);
  };
  Plan plan;
  if (problem.grid) {
    if (takes_tiles(settings)) plan.grid = without_gaps(*problem.grid);
    plan.evenness = evenness_of_poisson(*problem.grid);
    plan.dominance = dominance_of_poisson(*problem.grid);
    plan.coarse = wanted(coarse_pays(problem.rows(), plan.grid, plan.dominance));
    return plan;
  }
  const Csr<std::int32_t> matrix = problem.matrix.view();
  const Facts facts = facts_of(matrix, threads);
  if (takes_tiles(settings)) plan.grid = find_grid(matrix, threads);
  plan.evenness = facts.evenness;
  plan.dominance = facts.dominance;
  plan.coarse = wanted(coarse_pays(matrix, plan.grid, facts.dominance));
  return plan;
}

// work(matrix) with the whole one, which for Poisson's equation is only there as long.
template <class Work>
auto with_matrix(const Problem& problem, int threads, const Work& work) {
  return problem.grid ? work(poisson(*problem.grid, threads).view()) : work(problem.matrix.view());
}

// MatrixError.
inline Ordered ordered(const Problem& problem, const Plan& plan, const Settings& settings,
                       int lanes, int threads) {
  if (plan.grid) return ordered_in_tiles(*plan.grid, settings, lanes, threads);
  return with_matrix(problem, threads, [&](const Csr<std::int32_t>& matrix) {
    return ordered_in_grown(matrix, settings, lanes, threads);
  });
}

// MatrixError.
template <class T>
Hierarchy<T> hierarchy_of(const Problem& problem, const Plan& plan, int threads,
                          const Holding& holding) {
  if (problem.grid && plan.grid)
    return {stencil_of_poisson(*problem.grid), plan.dominance, threads, holding};
  return with_matrix(problem, threads, [&](const Csr<std::int32_t>& matrix) {
    return Hierarchy<T>(matrix, plan.grid, plan.dominance, threads, holding);
  });
}

}  // namespace flowos::solve
