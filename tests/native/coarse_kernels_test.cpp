// All sets of the multigrid cycle's kernels give the same bits.

#include "coarse_kernels.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "check.h"
#include "coarse_level.h"
#include "coarse_line.h"
#include "ordering.h"
#include "systems.h"

using flowos::solve::all_coarse_kernels;
using flowos::solve::CoarseKernels;
using flowos::solve::Groups;
using flowos::solve::kLanes;
using flowos::solve::LanesMatrix;
using flowos::solve::LevelView;
using flowos::solve::Line;
using flowos::solve::order_bricks;
using flowos::solve::order_graph;
using flowos::solve::Ordering;
using flowos::solve::Within;

namespace {

// What all kernels make of the same vectors, one after another.
template <class T>
std::array<Line<T>, 7> made_by(const CoarseKernels<T>& kernels, const LevelView<T>& level,
                               const Within& within, std::int64_t groups) {
  std::array<Line<T>, 7> vectors;
  Draws draws(4);
  for (Line<T>& vector : vectors) {
    for (std::int64_t i = 0; i < groups * level.steps * kLanes<T>; ++i) {
      vector.push_back(static_cast<T>(draws.next()));
    }
  }
  auto& [r, y, p, q, x, v, coarse] = vectors;
  const Groups all{0, groups};
  Vector sums(at(groups));
  kernels.forward(level, all, r.data(), y.data());
  kernels.forward_update(level, all, T(0.3), p.data(), q.data(), x.data(), r.data(), y.data(),
                         sums.data());
  kernels.restrict_within(level, all, within, y.data(), coarse.data());
  kernels.prolong_within(level, all, within, coarse.data(), y.data());
  kernels.backward(level, all, r.data(), y.data());
  kernels.backward_keep(level, all, r.data(), y.data(), v.data(), sums.data());
  kernels.direction(level, all, y.data(), v.data(), T(0.7), p.data(), q.data(), sums.data());
  kernels.residual(level, all, y.data(), x.data());
  kernels.dense(kLanes<T>, p.data(), q.data(), r.data());
  for (const double sum : sums) x.push_back(static_cast<T>(sum));
  return vectors;
}

template <class T>
void check_kernels() {
  const Matrix matrix = cells_of({{12, 24, 40}}, {1, 0.3, 1}, true, 3);
  for (const bool grid : {true, false}) {
    const Ordering ordering = grid ? order_bricks({{12, 24, 40}}, {4, 4, 4}, kLanes<T>)
                                   : order_graph(matrix.view(), 32, 0, kLanes<T>);
    const LanesMatrix<T> lanes(matrix.view(), ordering, 0.5, 2);
    std::vector<std::uint16_t> steps(at(ordering.block_rows));
    for (std::size_t step = 0; step < steps.size(); ++step) {
      steps[step] = static_cast<std::uint16_t>(step / 3);
    }
    const Within within{.coarse_steps = ordering.block_rows / 3 + 1, .step = steps.data()};
    const auto plain =
        made_by(*all_coarse_kernels<T>().front(), lanes.view(), within, ordering.groups());
    for (const CoarseKernels<T>* kernels : all_coarse_kernels<T>()) {
      const auto made = made_by(*kernels, lanes.view(), within, ordering.groups());
      for (std::size_t i = 0; i < plain.size(); ++i) {
        CHECK(std::memcmp(plain[i].data(), made[i].data(), plain[i].size() * sizeof(T)) == 0);
      }
    }
  }
}

}  // namespace

int main() {
  check_kernels<float>();
  check_kernels<double>();
}
