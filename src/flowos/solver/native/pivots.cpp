#include "pivots.h"

#include <atomic>
#include <cstdint>
#include <vector>

#include "matrix.h"
#include "matrix_error.h"
#include "ordering.h"
#include "ordering_parts.h"

namespace flowos::solve {
namespace {

constexpr double kFirstShift = 1e-3, kMostShift = 1, kLeastPivot = 1e-12;
constexpr std::int64_t kRun = 1 << 14;

template <class Index>
class Pivoting {
 public:
  Pivoting(const Csr<Index>& matrix, const Ordering& ordering, double relax, int threads)
      : matrix_(matrix), ordering_(ordering), relax_(relax), threads_(threads) {
    if (relax_ > 0) after_.resize(at(matrix_.rows));
  }

  Pivots made() {
    Pivots pivots;
    pivots.values.resize(at(matrix_.rows));
    pivots.middle.resize(at(matrix_.rows));
    while (breaks_down(pivots)) {
      pivots.shift = pivots.shift > 0 ? 2 * pivots.shift : kFirstShift;
      if (pivots.shift > kMostShift) {
        throw MatrixError("no incomplete factor is positive: is the matrix positive definite?");
      }
    }
    return pivots;
  }

 private:
  // Whether a pivot is not positive. Rows of a colour need those of earlier ones, and of a block
  // those before them.
  bool breaks_down(Pivots& pivots) {
    std::atomic<bool> bad = false;
    const std::int64_t size = std::int64_t{ordering_.block_rows} * ordering_.lanes;
    for (int colour = 0; colour < ordering_.colours(); ++colour) {
      const std::int64_t first = ordering_.colour_starts[at(colour)];
      const std::int64_t count = ordering_.colour_starts[at(colour) + 1] - first;
      for_runs(count, kRun / size + 1, threads_, [&](std::int64_t from, std::int64_t past) {
        for (std::int64_t place = (first + from) * size; place < (first + past) * size; ++place) {
          const std::int32_t row = ordering_.row[at(place)];
          if (row >= 0 && !set_pivot(row, place, pivots))
            bad.store(true, std::memory_order_relaxed);
        }
      });
      if (bad) return true;
    }
    return false;
  }

  bool set_pivot(std::int64_t row, std::int64_t place, Pivots& pivots) {
    double diagonal = 0, less = 0, after = 0;
    for (Index k = matrix_.starts[row]; k < matrix_.starts[row + 1]; ++k) {
      const std::int64_t column = matrix_.columns[k];
      const double value = matrix_.values[k];
      if (column == row) {
        diagonal += value;
      } else if (ordering_.place[at(column)] < place) {
        less += value * dropped(value, column) / pivots.values[at(column)];
      } else {
        after += value;
      }
    }
    if (relax_ > 0) after_[at(row)] = after;
    const double own = diagonal;
    diagonal *= 1 + pivots.shift;
    pivots.values[at(row)] = diagonal - less;
    pivots.middle[at(row)] = own / (diagonal - less) - 2;
    return diagonal - less > kLeastPivot * diagonal;
  }

  double dropped(double value, std::int64_t column) const {
    return relax_ == 0 ? value : (1 - relax_) * value + relax_ * after_[at(column)];
  }

  const Csr<Index>& matrix_;
  const Ordering& ordering_;
  double relax_;
  int threads_;
  std::vector<double> after_;  // of each row the sum of what follows the diagonal
};

}  // namespace

template <class Index>
Pivots pivots_of(const Csr<Index>& matrix, const Ordering& ordering, double relax, int threads) {
  return Pivoting<Index>(matrix, ordering, relax, threads).made();
}

template Pivots pivots_of(const Csr<std::int32_t>&, const Ordering&, double, int);
template Pivots pivots_of(const Csr<std::int64_t>&, const Ordering&, double, int);

}  // namespace flowos::solve
