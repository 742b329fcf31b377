#include "coarse.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "coarse_aggregates.h"
#include "coarse_kernels.h"
#include "coarse_level.h"
#include "coarse_levels.h"
#include "coarse_line.h"
#include "dominance.h"
#include "matrix.h"
#include "ordering.h"
#include "ordering_parts.h"
#include "team.h"

namespace flowos::solve {

// Incomplete Cholesky moves less than half the bytes of a cycle and needs less of a set-up: so
// there must be rows enough for it to need as many more iterations.
template <class Index>
bool coarse_pays(const Csr<Index>& matrix, const std::optional<Grid>& grid,
                 const Dominance& dominance) {
  constexpr std::int64_t kLeastRows = 1'000'000;
  constexpr double kLeastShare = 0.97;
  const bool tied = dominance.everywhere && dominance.share >= kLeastShare;
  return matrix.rows >= kLeastRows && tied && (!grid || grid_ties(matrix, *grid).even);
}

template <class T>
class Multigrid<T>::Inside {
 public:
  template <class Index>
  Inside(const Csr<Index>& matrix, const std::optional<Grid>& grid, const Dominance& dominance,
         int threads);

  void precondition(std::span<const double> r, std::span<double> z);
  void load(std::span<const double> residual, double scale);
  void forget() { aimed_ = 0; }
  double advance();
  bool aim();
  void add_to(std::span<double> x);

  MultigridMade made;

 private:
  template <class Work>
  void colours(const Level<T>& level, bool forward, const Work& work);
  template <class Work>
  void all(const Level<T>& level, const Work& work);
  void correct(std::size_t l);
  void cycle(std::size_t l);
  void restrict_to(Level<T>& level, Line<T>& coarse);
  void prolong_from(const Line<T>& coarse, Level<T>& level);
  void describe(std::int64_t entries);

  int threads_;
  double scale_;  // of the matrix
  const CoarseKernels<T>& kernels_;
  Hierarchy<T> hierarchy_;

  Line<T> x_, p_, q_, v_;  // v: r - L z of the z before the backward sweep
  std::vector<double> sums_;
  double load_scale_ = 1;
  double alpha_ = 0;  // the step to be gone
  double aimed_ = 0;  // r'z when it was chosen; 0: there is no direction yet
};

template <class T>
template <class Index>
Multigrid<T>::Inside::Inside(const Csr<Index>& matrix, const std::optional<Grid>& grid,
                             const Dominance& dominance, int threads)
    : threads_(threads),
      scale_(1 / dominance.greatest),
      kernels_(*all_coarse_kernels<T>().back()),
      hierarchy_(matrix, grid, scale_, dominance.everywhere, threads),
      sums_(at(hierarchy_.ordering.groups())) {
  for (Line<T>* vector : {&x_, &p_, &q_, &v_}) {
    *vector = zeros<T>(hierarchy_.ordering.places(), threads_);
  }
  describe(matrix.starts[matrix.rows] - matrix.rows);
}

// What an iteration moves: how often the sweeps read each half of the matrix, the diagonal and the
// vectors, and what they write, counted twice where it was not read before.
template <class T>
void Multigrid<T>::Inside::describe(std::int64_t entries) {
  constexpr std::int64_t kFinestVectors = 24, kCoarseVectors = 11;
  made.blocks = hierarchy_.blocks;
  made.block_rows = hierarchy_.ordering.block_rows;
  made.colours = hierarchy_.ordering.colours();
  made.rows = hierarchy_.rows;
  made.order_seconds = hierarchy_.order_seconds;
  made.store_seconds = hierarchy_.store_seconds;
  made.coarse_seconds = hierarchy_.coarse_seconds;
  if (entries > 0) {
    made.fill =
        static_cast<double>(hierarchy_.levels[0].matrix.entries()) / static_cast<double>(entries);
  }
  bool finest = true;
  for (const Level<T>& level : hierarchy_.levels) {
    const std::int64_t lower = level.matrix.lower_bytes(), upper = level.matrix.upper_bytes();
    const auto vector = static_cast<std::int64_t>(level.y.size() * sizeof(T));
    made.bytes_per_iteration +=
        (finest ? 3 : 2) * lower + 2 * upper + (finest ? kFinestVectors : kCoarseVectors) * vector;
    made.memory_bytes += lower + upper + (finest ? 7 : 4) * vector;
    finest = false;
  }
}

// ---- The cycle.

template <class T>
template <class Work>
void Multigrid<T>::Inside::colours(const Level<T>& level, bool forward, const Work& work) {
  const std::size_t count = level.colour_starts.size() - 1;
  const int steps = level.matrix.view().steps;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t colour = forward ? i : count - 1 - i;
    share_out(level.colour_starts[colour], level.colour_starts[colour + 1], steps, threads_, work);
  }
}

template <class T>
template <class Work>
void Multigrid<T>::Inside::all(const Level<T>& level, const Work& work) {
  share_out(0, level.groups(), level.matrix.view().steps, threads_, work);
}

// coarse = P' (-U y)
template <class T>
void Multigrid<T>::Inside::restrict_to(Level<T>& level, Line<T>& coarse) {
  const LevelView<T> view = level.matrix.view();
  const Transfer& down = level.down;
  if (down.coarse_steps > 0) {
    all(level, [&](Groups groups) {
      kernels_.restrict_within(view, groups, down.within(), level.y.data(), coarse.data());
    });
    return;
  }
  all(level, [&](Groups groups) {
    kernels_.residual(view, groups, level.y.data(), level.residual.data());
  });
  share_out(0, static_cast<std::int64_t>(down.coarse_place.size()), 1, threads_, [&](Groups some) {
    for (std::int64_t i = some.first; i < some.past; ++i) {
      T sum = 0;
      for (std::int32_t k = down.starts[at(i)]; k < down.starts[at(i + 1)]; ++k) {
        sum += level.residual[at(down.places[at(k)])];
      }
      coarse[at(down.coarse_place[at(i)])] = sum;
    }
  });
}

// y += P coarse
template <class T>
void Multigrid<T>::Inside::prolong_from(const Line<T>& coarse, Level<T>& level) {
  const Transfer& down = level.down;
  if (down.coarse_steps > 0) {
    all(level, [&](Groups groups) {
      kernels_.prolong_within(level.matrix.view(), groups, down.within(), coarse.data(),
                              level.y.data());
    });
    return;
  }
  share_out(0, static_cast<std::int64_t>(down.coarse_place.size()), 1, threads_, [&](Groups some) {
    for (std::int64_t i = some.first; i < some.past; ++i) {
      const T value = coarse[at(down.coarse_place[at(i)])];
      for (std::int32_t k = down.starts[at(i)]; k < down.starts[at(i + 1)]; ++k) {
        level.y[at(down.places[at(k)])] += value;
      }
    }
  });
}

// y += P B P' (r - A y), after a forward sweep from nothing.
template <class T>
void Multigrid<T>::Inside::correct(std::size_t l) {
  Level<T>& level = hierarchy_.levels[l];
  Dense<T>& dense = hierarchy_.dense;
  if (l + 1 < hierarchy_.levels.size()) {
    Level<T>& coarse = hierarchy_.levels[l + 1];
    restrict_to(level, coarse.r);
    cycle(l + 1);
    prolong_from(coarse.y, level);
  } else if (dense.rows > 0) {
    restrict_to(level, dense.r);
    kernels_.dense(dense.rows, dense.inverse.data(), dense.r.data(), dense.y.data());
    prolong_from(dense.y, level);
  }
}

template <class T>
void Multigrid<T>::Inside::cycle(std::size_t l) {
  Level<T>& level = hierarchy_.levels[l];
  const LevelView<T> view = level.matrix.view();
  const T* r = level.r.data();
  T* y = level.y.data();
  colours(level, true, [&](Groups groups) { kernels_.forward(view, groups, r, y); });
  correct(l);
  colours(level, false, [&](Groups groups) { kernels_.backward(view, groups, r, y); });
}

// ---- The iteration.

template <class T>
void Multigrid<T>::Inside::load(std::span<const double> residual, double scale) {
  const Ordering& ordering = hierarchy_.ordering;
  Line<T>& r = hierarchy_.levels[0].r;
  load_scale_ = scale;
  alpha_ = 0;
  share_out(0, ordering.places(), 1, threads_, [&](Groups some) {
    for (std::int64_t place = some.first; place < some.past; ++place) {
      const std::int32_t row = ordering.row[at(place)];
      r[at(place)] = row < 0 ? T(0) : static_cast<T>(residual[at(row)] * scale);
      x_[at(place)] = 0;
    }
  });
}

template <class T>
double Multigrid<T>::Inside::advance() {
  Level<T>& level = hierarchy_.levels[0];
  const LevelView<T> view = level.matrix.view();
  const T alpha = static_cast<T>(alpha_);
  colours(level, true, [&](Groups groups) {
    kernels_.forward_update(view, groups, alpha, p_.data(), q_.data(), x_.data(), level.r.data(),
                            level.y.data(), sums_.data());
  });
  alpha_ = 0;
  return sum_in_order(sums_);
}

template <class T>
bool Multigrid<T>::Inside::aim() {
  Level<T>& level = hierarchy_.levels[0];
  const LevelView<T> view = level.matrix.view();
  T* z = level.y.data();
  correct(0);
  colours(level, false, [&](Groups groups) {
    kernels_.backward_keep(view, groups, level.r.data(), z, v_.data(), sums_.data());
  });
  const double rz = sum_in_order(sums_);
  const T beta = static_cast<T>(aimed_ > 0 ? rz / aimed_ : 0);
  all(level, [&](Groups groups) {
    kernels_.direction(view, groups, z, v_.data(), beta, p_.data(), q_.data(), sums_.data());
  });
  const double pq = sum_in_order(sums_);
  if (!(pq > 0) || !(rz > 0)) return false;
  alpha_ = rz / pq;
  aimed_ = rz;
  return true;
}

// Matrix and residual were multiplied: for s A x = t r, what was gone is t / s times as far.
template <class T>
void Multigrid<T>::Inside::add_to(std::span<double> x) {
  const Ordering& ordering = hierarchy_.ordering;
  const double back = scale_ / load_scale_;
  share_out(0, ordering.rows, 1, threads_, [&](Groups rows) {
    for (std::int64_t row = rows.first; row < rows.past; ++row) {
      const std::size_t place = at(ordering.place[at(row)]);
      x[at(row)] +=
          back * (static_cast<double>(x_[place]) + alpha_ * static_cast<double>(p_[place]));
      x_[place] = 0;
    }
  });
}

template <class T>
void Multigrid<T>::Inside::precondition(std::span<const double> r, std::span<double> z) {
  double greatest = 0;
  for (const double value : r) greatest = std::max(greatest, std::fabs(value));
  if (greatest == 0) {
    std::ranges::fill(z, 0.0);
    return;
  }
  load(r, 1 / greatest);
  forget();
  cycle(0);
  const Ordering& ordering = hierarchy_.ordering;
  for (std::size_t row = 0; row < z.size(); ++row) {
    const T value = hierarchy_.levels[0].y[at(ordering.place[row])];
    z[row] = scale_ * greatest * static_cast<double>(value);
  }
}

// ---- The face.

template <class T>
template <class Index>
Multigrid<T>::Multigrid(const Csr<Index>& matrix, const std::optional<Grid>& grid,
                        const Dominance& dominance, int threads)
    : inside_(std::make_unique<Inside>(matrix, grid, dominance, threads)) {}

template <class T>
Multigrid<T>::~Multigrid() = default;
template <class T>
Multigrid<T>::Multigrid(Multigrid&&) noexcept = default;
template <class T>
Multigrid<T>& Multigrid<T>::operator=(Multigrid&&) noexcept = default;

template <class T>
const MultigridMade& Multigrid<T>::made() const {
  return inside_->made;
}
template <class T>
void Multigrid<T>::precondition(std::span<const double> r, std::span<double> z) {
  inside_->precondition(r, z);
}
template <class T>
void Multigrid<T>::load(std::span<const double> residual, double scale) {
  inside_->load(residual, scale);
}
template <class T>
void Multigrid<T>::forget() {
  inside_->forget();
}
template <class T>
double Multigrid<T>::advance() {
  return inside_->advance();
}
template <class T>
bool Multigrid<T>::aim() {
  return inside_->aim();
}
template <class T>
void Multigrid<T>::add_to(std::span<double> x) {
  inside_->add_to(x);
}

template class Multigrid<float>;
template class Multigrid<double>;
#define FLOWOS_FOR(T, Index)                                                      \
  template Multigrid<T>::Multigrid(const Csr<Index>&, const std::optional<Grid>&, \
                                   const Dominance&, int);
FLOWOS_FOR(float, std::int32_t)
FLOWOS_FOR(float, std::int64_t)
FLOWOS_FOR(double, std::int32_t)
FLOWOS_FOR(double, std::int64_t)
#undef FLOWOS_FOR
template bool coarse_pays(const Csr<std::int32_t>&, const std::optional<Grid>&, const Dominance&);
template bool coarse_pays(const Csr<std::int64_t>&, const std::optional<Grid>&, const Dominance&);

}  // namespace flowos::solve
