#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "coarse_line.h"
#include "groups.h"
#include "matrix.h"
#include "matrix_error.h"
#include "ordering.h"

namespace flowos::solve {

// By place the pivots of an incomplete Cholesky factor that keeps the entries of A off the
// diagonal: where no two neighbours of a row are neighbours this is IC(0). Of padding: 1 and 0.
struct Pivots {
  Line<double> values;
  Line<double> middle;  // the diagonal over its pivot, less 2
  double shift = 0;     // diagonal * (1 + shift) was factored (Manteuffel: Math. Comp. 34, 1980)
};

// relax: the share of the fill dropped that is taken off the diagonal (Axelsson and Lindskog:
// Numerische Mathematik 48, 1986). The crew is as of Cholesky; the same bits whatever it is.
template <class Index, class Crew>
class Pivoting {
 public:
  Pivoting(const Csr<Index>& matrix, Crew& crew, double relax)
      : matrix_(matrix), crew_(crew), ordering_(crew.ordering()), relax_(relax) {}

  // MatrixError: not even with a diagonal twice as large are all pivots positive.
  Pivots made() {
    Pivots pivots;
    fill(pivots.values, 1);
    fill(pivots.middle, 0);
    if (relax_ > 0) add_up_rows();
    while (breaks_down(pivots)) {
      pivots.shift = pivots.shift > 0 ? 2 * pivots.shift : kFirstShift;
      if (pivots.shift > kMostShift) {
        throw MatrixError("no incomplete factor is positive: is the matrix positive definite?");
      }
    }
    crew_.fetch(pivots.values.data());
    return pivots;
  }

 private:
  static constexpr double kFirstShift = 1e-3, kMostShift = 1, kLeastPivot = 1e-12;

  void fill(Line<double>& vector, double value) {
    vector.resize(static_cast<std::size_t>(ordering_.places()));
    const std::int64_t size = ordering_.group_places();
    crew_.each_held([&](Groups groups) {
      std::fill(vector.begin() + groups.first * size, vector.begin() + groups.past * size, value);
    });
  }

  // Those of a row that another process reads must be there before its pivot is.
  void add_up_rows() {
    fill(after_, 0);
    if (!crew_.has_others()) return;
    crew_.forward(after_.data(), [&](Groups groups) {
      each_row(ordering_, groups, [&](std::size_t row, std::size_t place) {
        for (Index k = matrix_.starts[row]; k < matrix_.starts[row + 1]; ++k) {
          if (place_of(k) > place) after_[place] += matrix_.values[k];
        }
      });
    });
  }

  // Whether a pivot is not positive.
  bool breaks_down(Pivots& pivots) {
    std::atomic<bool> bad = false;
    crew_.forward(pivots.values.data(), [&](Groups groups) {
      each_row(ordering_, groups, [&](std::size_t row, std::size_t place) {
        if (!set_pivot(row, place, pivots)) bad.store(true, std::memory_order_relaxed);
      });
    });
    return crew_.any(bad);
  }

  bool set_pivot(std::size_t row, std::size_t place, Pivots& pivots) {
    double own = 0, less = 0, after = 0;
    for (Index k = matrix_.starts[row]; k < matrix_.starts[row + 1]; ++k) {
      const std::size_t other = place_of(k);
      const double value = matrix_.values[k];
      if (other == place) {
        own += value;
      } else if (other < place) {
        less += value * dropped(value, other) / pivots.values[other];
      } else {
        after += value;
      }
    }
    if (relax_ > 0) after_[place] = after;
    const double diagonal = own * (1 + pivots.shift);
    pivots.values[place] = diagonal - less;
    pivots.middle[place] = own / (diagonal - less) - 2;
    return diagonal - less > kLeastPivot * diagonal;
  }

  double dropped(double value, std::size_t other) const {
    return relax_ == 0 ? value : (1 - relax_) * value + relax_ * after_[other];
  }

  std::size_t place_of(Index entry) const {
    const auto column = static_cast<std::size_t>(matrix_.columns[entry]);
    return static_cast<std::size_t>(ordering_.place[column]);
  }

  const Csr<Index>& matrix_;
  Crew& crew_;
  const Ordering& ordering_;
  double relax_;
  Line<double> after_;  // by place, of its row the sum of what follows the diagonal
};

}  // namespace flowos::solve
