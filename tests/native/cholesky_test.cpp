// The sweeps of incomplete Cholesky factors: all sets of kernels give the same bits.

#include <cstddef>
#include <vector>

#include "base/storage.h"
#include "check.h"
#include "ic/kernels.h"
#include "matrix/generate.h"
#include "matrix/grid.h"
#include "ordering/groups.h"
#include "ordering/ordering.h"
#include "simd/even_lanes.h"
#include "simd/lanes_matrix.h"

using namespace flowos::solve;

namespace {

constexpr int kThreads = 1;

template <class T>
struct Work {
  Line<T> middle, r, p, t, s, x;
  std::vector<double> rr, pw, ww;

  Work(std::size_t places, std::size_t groups) : rr(groups), pw(groups), ww(groups) {
    double value = 0.1;
    for (Line<T>* line : {&middle, &r, &p, &t, &s, &x}) {
      line->resize(places + kLanes<T>);
      for (T& place : *line) {
        value = value * 3.9 * (1 - value);  // the logistic map: anywhere in (0, 1)
        place = static_cast<T>(value - 0.5);
      }
      for (std::size_t i = places; i < line->size(); ++i) (*line)[i] = 0;
    }
  }

  bool operator==(const Work&) const = default;
};

template <class T>
Work<T> swept(const CholeskyKernels<T>& kernels, const Ordering& ordering, const LevelView<T>& a) {
  Work<T> w(static_cast<std::size_t>(ordering.places()),
            static_cast<std::size_t>(ordering.groups()));
  const CholeskyVectors<T> v{.middle = w.middle.data(),
                             .r = w.r.data(),
                             .p = w.p.data(),
                             .t = w.t.data(),
                             .s = w.s.data(),
                             .x = w.x.data(),
                             .diagonal = T(0.75)};
  const Groups first{0, ordering.colour_starts[1]}, rest{first.past, ordering.groups()};
  kernels.backward_step(a, rest, T(0.3), T(0.7), v, w.rr.data());
  kernels.both_steps(a, first, T(0.3), T(0.7), v, w.rr.data(), w.pw.data(), w.ww.data());
  kernels.forward_step(a, rest, v, w.pw.data(), w.ww.data());
  kernels.forward(a, {0, ordering.groups()}, w.r.data(), w.rr.data());
  kernels.backward(a, {0, ordering.groups()}, w.r.data());
  return w;
}

template <class T>
void all_kernels_give_the_same_bits() {
  const Grid grid{.cells = {9, 20, 17}};  // with padding and gathered entries
  const auto matrix = poisson(grid);
  const Ordering ordering = order_tiles(grid, {4, 4, 4}, kLanes<T>);
  const LanesMatrix<T> lanes(matrix.view(), ordering, 0.125, kThreads);
  const EvenMatrix<T> few = even_matrix<T>(matrix.view(), ordering, 0.125, kThreads);
  Line<T> inverse(static_cast<std::size_t>(ordering.places()));
  for (std::size_t i = 0; i < inverse.size(); ++i) inverse[i] = T(1) + static_cast<T>(i % 7) / 8;
  const LevelView<T> even{.steps = ordering.block_rows,
                          .lower = few.lower.groups(),
                          .upper = few.upper.groups(),
                          .inverse = inverse.data()};
  const auto sets = all_cholesky_kernels<T>();
  const Work<T> plain = swept(*sets[0], ordering, lanes.view());
  const Work<T> plain_even = swept(*sets[0]->even, ordering, even);
  CHECK(!(plain == plain_even));
  for (const CholeskyKernels<T>* set : sets) {
    CHECK(swept(*set, ordering, lanes.view()) == plain);
    CHECK(swept(*set->even, ordering, even) == plain_even);
  }
}

}  // namespace

int main() {
  all_kernels_give_the_same_bits<float>();
  all_kernels_give_the_same_bits<double>();
}
