#include "coarse.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "coarse_aggregates.h"
#include "coarse_cycle.h"
#include "coarse_kernels.h"
#include "coarse_level.h"
#include "coarse_levels.h"
#include "coarse_line.h"
#include "facts.h"
#include "groups.h"
#include "matrix.h"
#include "ordering.h"
#include "ordering_parts.h"
#include "team.h"

namespace flowos::solve {

// An iteration with incomplete Cholesky moves fewer bytes than one with a cycle, and there are no
// levels to be made: so there must be rows enough for it to need many more of them.
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
  GradientVectors<T> vectors();
  void describe(std::int64_t entries);

  int threads_;
  double scale_;  // of the matrix
  Cycle<T> cycle_;

  Line<T> x_, p_, q_, u_;  // see GradientVectors
  std::vector<double> sums_;
  double load_scale_ = 1;
  double alpha_ = 0;  // the step to be gone
  double gone_ = 0;   // the one that r has gone, but x not yet
  double aimed_ = 0;  // r'z when it was chosen; 0: there is no direction yet
};

template <class T>
template <class Index>
Multigrid<T>::Inside::Inside(const Csr<Index>& matrix, const std::optional<Grid>& grid,
                             const Dominance& dominance, int threads)
    : threads_(threads),
      scale_(std::ldexp(1.0, -std::ilogb(dominance.greatest))),
      cycle_(Hierarchy<T>(matrix, grid, scale_, dominance.everywhere, threads), threads),
      sums_(at(cycle_.hierarchy().ordering.groups())) {
  for (Line<T>* vector : {&x_, &p_, &q_, &u_}) {
    const bool wanted = vector != &u_ || !cycle_.finest().even();
    *vector = zeros<T>(wanted ? cycle_.hierarchy().ordering.places() : 0, threads_);
  }
  describe(matrix.starts[matrix.rows] - matrix.rows);
}

template <class T>
void Multigrid<T>::Inside::describe(std::int64_t entries) {
  made.blocks = cycle_.hierarchy().blocks;
  made.block_rows = cycle_.hierarchy().ordering.block_rows;
  made.colours = cycle_.hierarchy().ordering.colours();
  made.rows = cycle_.hierarchy().rows;
  made.order_seconds = cycle_.hierarchy().order_seconds;
  made.store_seconds = cycle_.hierarchy().store_seconds;
  made.coarse_seconds = cycle_.hierarchy().coarse_seconds;
  for (const Line<T>* vector : {&x_, &p_, &q_, &u_}) {
    made.memory_bytes += static_cast<std::int64_t>(vector->size() * sizeof(T));
  }
  made.memory_bytes +=
      4 * (cycle_.hierarchy().ordering.rows + cycle_.hierarchy().ordering.places());
  for (const Level<T>& level : cycle_.hierarchy().levels) {
    const bool finest = &level == &cycle_.finest();
    const LevelBytes bytes = level.bytes(finest);
    made.bytes_per_iteration += bytes.in_iteration;
    made.memory_bytes += bytes.stored;
    if (finest && entries > 0) {
      made.fill = static_cast<double>(level.entries()) / static_cast<double>(entries);
    }
  }
}

// ---- The iteration.

template <class T>
void Multigrid<T>::Inside::load(std::span<const double> residual, double scale) {
  const Ordering& ordering = cycle_.hierarchy().ordering;
  Line<T>& r = cycle_.finest().r;
  load_scale_ = scale;
  alpha_ = gone_ = 0;
  share_out(0, ordering.places(), 1, threads_, [&](Groups some) {
    for (std::int64_t place = some.first; place < some.past; ++place) {
      const std::int32_t row = ordering.row[at(place)];
      r[at(place)] = row < 0 ? T(0) : static_cast<T>(residual[at(row)] * scale);
      x_[at(place)] = 0;
    }
  });
}

template <class T>
GradientVectors<T> Multigrid<T>::Inside::vectors() {
  Level<T>& level = cycle_.finest();
  return {.r = level.r.data(),
          .z = level.y.data(),
          .u = u_.data(),
          .p = p_.data(),
          .q = q_.data(),
          .x = x_.data()};
}

template <class T>
double Multigrid<T>::Inside::advance() {
  Level<T>& level = cycle_.finest();
  const CoarseKernels<T>& kernels = cycle_.kernels_of(level);
  const LevelView<T> view = level.view();
  const GradientVectors<T> v = vectors();
  const T alpha = static_cast<T>(alpha_);
  cycle_.sweep_down(0, [&](Groups groups) {
    kernels.forward_update(view, groups, alpha, v, sums_.data(), level.sums.data());
  });
  gone_ = std::exchange(alpha_, 0);
  return sum_in_order(sums_);
}

// The new direction is known before the backward sweep, and that ends with the first colour, whose
// rows have others before them in their own block only: so they go on to it at once.
template <class T>
bool Multigrid<T>::Inside::aim() {
  Level<T>& level = cycle_.finest();
  const CoarseKernels<T>& kernels = cycle_.kernels_of(level);
  const LevelView<T> view = level.view();
  const GradientVectors<T> v = vectors();
  cycle_.correct(0);
  const double rz = cycle_.reduction();
  if (!(rz > 0)) return false;
  const T gone = static_cast<T>(gone_), beta = static_cast<T>(aimed_ > 0 ? rz / aimed_ : 0);
  const T* c = cycle_.correction(0);
  const auto direct = [&](Groups groups) {
    kernels.direction(view, groups, gone, beta, v, sums_.data());
  };
  cycle_.sweep_up(0, [&](std::size_t colour, Groups groups) {
    if (colour > 0) return kernels.backward_keep(view, groups, c, v);
    for (std::int64_t g = groups.past - 1; g >= groups.first; --g) {
      kernels.backward_keep(view, {g, g + 1}, c, v);
      direct({g, g + 1});
    }
  });
  cycle_.share(level, 1, level.colour_starts.size() - 1, direct);
  gone_ = 0;
  const double pq = sum_in_order(sums_);
  if (!(pq > 0)) return false;
  alpha_ = rz / pq;
  aimed_ = rz;
  return true;
}

// Matrix and residual were multiplied: for s A x = t r, what was gone is t / s times as far.
template <class T>
void Multigrid<T>::Inside::add_to(std::span<double> x) {
  const Ordering& ordering = cycle_.hierarchy().ordering;
  const double back = scale_ / load_scale_, gone = gone_ + alpha_;
  share_out(0, ordering.rows, 1, threads_, [&](Groups rows) {
    for (std::int64_t row = rows.first; row < rows.past; ++row) {
      const std::size_t place = at(ordering.place[at(row)]);
      x[at(row)] += back * (static_cast<double>(x_[place]) + gone * static_cast<double>(p_[place]));
      x_[place] = 0;
    }
  });
  gone_ = 0;
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
  cycle_.run(0);
  const Ordering& ordering = cycle_.hierarchy().ordering;
  for (std::size_t row = 0; row < z.size(); ++row) {
    const T value = cycle_.finest().y[at(ordering.place[row])];
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
