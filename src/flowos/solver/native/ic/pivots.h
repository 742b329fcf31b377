#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/storage.h"
#include "ic/sweeps.h"
#include "matrix/matrix.h"
#include "ordering/groups.h"
#include "ordering/ordering.h"
#include "ordering/permuted_rows.h"
#include "threads/executor.h"

namespace flowos::solve {

// By place the pivots of an incomplete Cholesky factor that keeps the entries of A off the
// diagonal: where no two neighbours of a row are neighbours this is IC(0). Of padding: 1 and 0.
struct Pivots {
  Raw<double> values;
  Raw<double> middle;  // the diagonal over its pivot, less 2
  double shift = 0;    // by how much of the diagonal a pivot was raised, at most
};

// What becomes of the fill that is dropped.
struct Dropping {
  double relax = 0;      // the share of it that is taken off the diagonal (Axelsson and Lindskog:
                         // Numerische Mathematik 48, 1986)
  bool dominant = true;  // all rows are diagonally dominant, so that pivots stay positive
};

// Computes the pivots colour by colour; the same bits whichever the executor.
template <class Index, Executor E>
class Pivoting {
 public:
  Pivoting(const Csr<Index>& matrix, const Ordering& ordering, E& executor,
           const Dropping& dropping)
      : matrix_(matrix),
        ordering_(ordering),
        executor_(executor),
        relax_(dropping.relax),
        min_share_(dropping.dominant ? kNearlyNone : kRaised) {}

  Pivots build() {
    Pivots pivots;
    fill(pivots.values, 1);
    fill(pivots.middle, 0);
    if (relax_ > 0) add_up_rows();
    std::vector<double> raised(static_cast<std::size_t>(ordering_.groups()));
    const auto value_of = [this](std::int64_t, Index k) { return matrix_.values[k]; };
    forward(executor_, pivots.values.data(), [&](Groups groups) {
      double& most = raised[static_cast<std::size_t>(groups.first)];
      visit_rows(matrix_, ordering_, groups, value_of,
                 [&](std::int64_t place, std::span<const Placed> row) {
                   if (row.empty()) return;
                   most = std::max(most, set_pivot(row, static_cast<std::size_t>(place), pivots));
                 });
    });
    for (const double by : raised) pivots.shift = std::max(pivots.shift, by);
    pivots.shift = executor_.greatest(pivots.shift);
    executor_.fetch(pivots.values.data());
    return pivots;
  }

 private:
  // Shares of the diagonal. A = (D + L) + (D + L') - (2 D - diagonal): pivots of more than half of
  // the diagonal bound the eigenvalues of M^-1 A, here by 4/3, whatever the rows are like. (A
  // singular matrix may have no last pivot even where rows are dominant.)
  static constexpr double kRaised = 0.8, kNearlyNone = 1e-12;

  void fill(Raw<double>& vector, double value) {
    vector.resize(static_cast<std::size_t>(ordering_.places()));
    const std::int64_t size = ordering_.group_places();
    executor_.each_held([&](Groups groups) {
      std::fill(vector.begin() + groups.first * size, vector.begin() + groups.past * size, value);
    });
  }

  // Those of a row that another process reads must be there before its pivot is.
  void add_up_rows() {
    fill(after_, 0);
    if (!executor_.is_distributed()) return;
    forward(executor_, after_.data(), [&](Groups groups) {
      each_row(ordering_, groups, [&](std::size_t row, std::size_t place) {
        for (Index k = matrix_.starts[row]; k < matrix_.starts[row + 1]; ++k) {
          if (place_of(k) > place) after_[place] += matrix_.values[k];
        }
      });
    });
  }

  // By how much of the diagonal it was raised.
  double set_pivot(std::span<const Placed> row, std::size_t place, Pivots& pivots) {
    double own = 0, less = 0, after = 0;
    for (const auto& [at, value] : row) {
      const auto other = static_cast<std::size_t>(at);
      if (other == place) {
        own += value;
      } else if (other < place) {
        less += value * dropped(value, other) / pivots.values[other];
      } else {
        after += value;
      }
    }
    if (relax_ > 0) after_[place] = after;
    const double left = own - less;
    const double pivot = left > min_share_ * own ? left : kRaised * own;
    pivots.values[place] = pivot;
    pivots.middle[place] = own / pivot - 2;
    return (pivot - left) / own;
  }

  double dropped(double value, std::size_t other) const {
    return relax_ == 0 ? value : (1 - relax_) * value + relax_ * after_[other];
  }

  std::size_t place_of(Index entry) const {
    const auto column = static_cast<std::size_t>(matrix_.columns[entry]);
    return static_cast<std::size_t>(ordering_.place[column]);
  }

  const Csr<Index>& matrix_;
  const Ordering& ordering_;
  E& executor_;
  double relax_, min_share_;
  Raw<double> after_;  // by place, of its row the sum of what follows the diagonal
};

}  // namespace flowos::solve
