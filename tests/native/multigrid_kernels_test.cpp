// All sets of the multigrid cycle's kernels give the same bits.

#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/storage.h"
#include "check.h"
#include "matrix/grid.h"
#include "multigrid/kernels.h"
#include "multigrid/stencil.h"
#include "ordering/groups.h"
#include "ordering/ordering.h"
#include "simd/lanes_matrix.h"
#include "systems.h"

using flowos::solve::all_coarse_kernels;
using flowos::solve::CoarseKernels;
using flowos::solve::GradientVectors;
using flowos::solve::Grid;
using flowos::solve::Groups;
using flowos::solve::kLanes;
using flowos::solve::LanesMatrix;
using flowos::solve::LevelView;
using flowos::solve::Line;
using flowos::solve::order_graph;
using flowos::solve::order_tiles;
using flowos::solve::Ordering;
using flowos::solve::Stencil;
using flowos::solve::StencilLanes;
using flowos::solve::Within;

namespace {

template <class T>
using Lines = std::array<Line<T>, 8>;

// What all kernels make of the same vectors, one after another.
template <class T>
Lines<T> made_by(const CoarseKernels<T>& kernels, const LevelView<T>& level, const Within& within,
                 std::int64_t groups) {
  Lines<T> vectors;
  Draws draws(4);
  const std::int64_t places = groups * level.steps * kLanes<T>;
  for (Line<T>& vector : vectors) {
    for (std::int64_t i = 0; i < places; ++i) vector.push_back(static_cast<T>(draws.next()));
    vector.insert(vector.end(), kLanes<T>, T(0));
  }
  auto& [r, z, u, p, q, x, coarse, c] = vectors;
  const GradientVectors<T> v{
      .r = r.data(), .z = z.data(), .u = u.data(), .p = p.data(), .q = q.data(), .x = x.data()};
  const Groups all{0, groups};
  Vector one(at(groups)), other(at(groups));
  kernels.forward(level, all, r.data(), z.data(), one.data());
  kernels.forward_update(level, all, T(0.3), v, one.data(), other.data());
  kernels.restrict_within(level, all, within, z.data(), coarse.data());
  kernels.backward(level, all, c.data(), z.data());
  kernels.backward_keep(level, all, c.data(), v);
  kernels.direction(level, all, T(0.2), T(0.7), v, one.data());
  kernels.residual(level, all, z.data(), c.data());
  if (kernels.dense) kernels.dense(kLanes<T>, p.data(), q.data(), r.data());
  for (const Vector& sums : {one, other}) {
    for (const double sum : sums) x.push_back(static_cast<T>(sum));
  }
  return vectors;
}

template <class T>
bool same(const Lines<T>& some, const Lines<T>& others) {
  for (std::size_t i = 0; i < some.size(); ++i) {
    if (std::memcmp(some[i].data(), others[i].data(), some[i].size() * sizeof(T)) != 0) {
      return false;
    }
  }
  return true;
}

template <class T>
void check_kernels(LevelView<T> level, std::int64_t groups, bool even) {
  std::vector<std::uint16_t> steps(at(level.steps));
  for (std::size_t step = 0; step < steps.size(); ++step) {
    steps[step] = static_cast<std::uint16_t>(step / 3);
  }
  const Within within{.coarse_steps = level.steps / 3 + 1, .step = steps.data()};
  level.spread = level.lower;
  const auto sets = all_coarse_kernels<T>();
  const auto made = [&](const CoarseKernels<T>& set) {
    return made_by(even ? *set.even : set, level, within, groups);
  };
  const Lines<T> plain = made(*sets.front());
  for (const CoarseKernels<T>* set : sets) CHECK(same(plain, made(*set)));
}

template <class T>
void all_sets_give_the_same_bits() {
  const Grid grid{{12, 24, 40}};
  const Matrix matrix = cells_of(grid, {1, 0.3, 1}, true, 3);
  const Ordering tiles = order_tiles(grid, {4, 4, 4}, kLanes<T>);
  const Ordering grown = order_graph(matrix.view(), 32, 0, kLanes<T>);
  for (const Ordering* ordering : {&tiles, &grown}) {
    const LanesMatrix<T> lanes(matrix.view(), *ordering, 0.5, 2);
    check_kernels(lanes.view(), ordering->groups(), false);
  }
  for (const double wall : {1.0, 2.0}) {
    const Stencil stencil{.grid = grid, .ties = {1, 0.3, 1}, .walls = {wall, 0.3, 1}, .own = 0.1};
    const StencilLanes<T> lanes(stencil, tiles, 0.5, 2);
    check_kernels(lanes.view(), tiles.groups(), true);
  }
}

}  // namespace

int main() {
  all_sets_give_the_same_bits<float>();
  all_sets_give_the_same_bits<double>();
}
