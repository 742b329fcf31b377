#pragma once

#include <mpi.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "../matrix_error.h"
#include "../pivots.h"
#include "crew.h"
#include "halo.h"
#include "share.h"

namespace flowos::solve {

// The pivots of pivots.h where each rank has its share: those of a colour are sent before the next
// one is begun. In the same order of operations, so that they are the same bits.
class RankPivoting {
 public:
  RankPivoting(const Share& share, const Crew& crew, Halo<double>& halo, double relax,
               MPI_Comm comm)
      : share_(share), crew_(crew), halo_(halo), relax_(relax), comm_(comm) {}

  // MatrixError, on all ranks: not even with a diagonal twice as large are all pivots positive.
  Pivots made() {
    add_up_rows();
    Pivots pivots;
    while (breaks_down(pivots.shift)) {
      pivots.shift = pivots.shift > 0 ? 2 * pivots.shift : kFirstShift;
      if (pivots.shift > kMostShift)
        throw MatrixError("no incomplete factor is positive: is the matrix positive definite?");
    }
    pivots.values.resize(share_.row.size());
    pivots.middle.resize(share_.row.size());
    for (std::size_t row = 0; row < pivots.values.size(); row++) {
      pivots.values[row] = pivots_[static_cast<std::size_t>(share_.order.place[row])];
      pivots.middle[row] = diagonal_at(row) / pivots.values[row] - 2;
    }
    return pivots;
  }

 private:
  static constexpr double kFirstShift = 1e-3, kMostShift = 1, kLeastPivot = 1e-12;

  // visit(place of the column, value) for each entry of the row at this place.
  template <class Visit>
  void each_entry(std::size_t place, const Visit& visit) const {
    const auto row = static_cast<std::size_t>(share_.order.row[place]);
    const auto end = static_cast<std::size_t>(share_.matrix.starts[row + 1]);
    for (auto at = static_cast<std::size_t>(share_.matrix.starts[row]); at < end; at++) {
      const auto column = static_cast<std::size_t>(share_.matrix.columns[at]);
      visit(static_cast<std::size_t>(share_.order.place[column]), share_.matrix.values[at]);
    }
  }

  double diagonal_at(std::size_t row) const {
    const auto place = static_cast<std::size_t>(share_.order.place[row]);
    double sum = 0;
    each_entry(place, [&](std::size_t other, double value) { sum += other == place ? value : 0; });
    return sum;
  }

  // Of each row the sum of what follows the diagonal.
  void add_up_rows() {
    if (relax_ == 0) return;
    after_.assign(static_cast<std::size_t>(share_.order.places()), 0);
    crew_.forward(halo_, after_.data(), [&](int, std::int64_t group) {
      share_.each_row(group, [&](std::size_t, std::size_t place) {
        double sum = 0;
        each_entry(place, [&](std::size_t other, double value) {
          if (other > place) sum += value;
        });
        after_[place] = sum;
      });
    });
  }

  // Whether a pivot, of any rank, is not positive.
  bool breaks_down(double shift) {
    std::atomic<int> bad = 0;
    pivots_.assign(static_cast<std::size_t>(share_.order.places()), 1);
    crew_.forward(halo_, pivots_.data(), [&](int, std::int64_t group) {
      share_.each_row(group, [&](std::size_t, std::size_t place) {
        double diagonal = 0, less = 0;
        each_entry(place, [&](std::size_t other, double value) {
          if (other == place)
            diagonal += value;
          else if (other < place)
            less += value * dropped(value, other) / pivots_[other];
        });
        diagonal *= 1 + shift;
        pivots_[place] = diagonal - less;
        if (!(diagonal - less > kLeastPivot * diagonal)) bad.store(1, std::memory_order_relaxed);
      });
    });
    halo_.all(pivots_.data());
    int mine = bad, any = 0;
    MPI_Allreduce(&mine, &any, 1, MPI_INT, MPI_MAX, comm_);
    return any != 0;
  }

  double dropped(double value, std::size_t other) const {
    return relax_ == 0 ? value : (1 - relax_) * value + relax_ * after_[other];
  }

  const Share& share_;
  const Crew& crew_;
  Halo<double>& halo_;
  double relax_;
  MPI_Comm comm_;
  std::vector<double> after_, pivots_;  // by place
};

}  // namespace flowos::solve
