#include "multigrid/multigrid.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "matrix/grid.h"
#include "matrix/matrix.h"
#include "matrix/properties.h"
#include "multigrid/cg.h"
#include "multigrid/hierarchy.h"
#include "multigrid/level_executor.h"
#include "ordering/ordering.h"

namespace flowos::solve {

template <class T>
struct Multigrid<T>::Inside {
  template <class Index>
  Inside(const Csr<Index>& matrix, const std::optional<Grid>& grid, const Dominance& dominance,
         int threads)
      : hierarchy(matrix, grid, dominance, threads),
        executor(hierarchy, threads),
        gradients(hierarchy, executor) {
    describe(matrix.starts[matrix.rows] - matrix.rows);
  }

  void describe(std::int64_t entries);

  Hierarchy<T> hierarchy;
  LevelExecutor<T> executor;
  Gradients<T, LevelExecutor<T>> gradients;
  MultigridMade made;
};

template <class T>
void Multigrid<T>::Inside::describe(std::int64_t entries) {
  const Ordering& ordering = hierarchy.ordering;
  made.blocks = hierarchy.blocks;
  made.block_rows = ordering.block_rows;
  made.colours = ordering.colours();
  made.rows = hierarchy.rows;
  made.order_seconds = hierarchy.order_seconds;
  made.store_seconds = hierarchy.store_seconds;
  made.coarse_seconds = hierarchy.coarse_seconds;
  made.memory_bytes = gradients.memory_bytes() + 4 * (ordering.rows + ordering.places());
  for (const Level<T>& level : hierarchy.levels) {
    const bool finest = &level == hierarchy.levels.data();
    const LevelBytes bytes = level.bytes(finest);
    made.bytes_per_iteration += bytes.in_iteration;
    made.memory_bytes += bytes.stored;
    if (finest && entries > 0) {
      made.fill = static_cast<double>(level.entries()) / static_cast<double>(entries);
    }
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
  inside_->gradients.precondition(r, z);
}
template <class T>
void Multigrid<T>::load(std::span<const double> residual, double scale) {
  inside_->gradients.load(residual, scale);
}
template <class T>
void Multigrid<T>::forget() {
  inside_->gradients.forget();
}
template <class T>
double Multigrid<T>::advance() {
  return inside_->gradients.advance();
}
template <class T>
bool Multigrid<T>::aim() {
  return inside_->gradients.aim();
}
template <class T>
void Multigrid<T>::add_to(std::span<double> x) {
  inside_->gradients.add_to(x);
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

}  // namespace flowos::solve
