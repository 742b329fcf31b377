#pragma once

#include <mpi.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "../matrix_error.h"
#include "crew.h"
#include "halo.h"
#include "share.h"

namespace flowos::solve {

// Of each place the pivot of an incomplete Cholesky factor that has the entries of A off the
// diagonal: where no two neighbours of a row are neighbours this is IC(0). relax: the share of the
// fill dropped that is taken off the diagonal (Axelsson and Lindskog: Numerische Mathematik 48,
// 1986).
struct Pivots {
  std::vector<double> values;
  double shift = 0;  // diagonal * (1 + shift) was factored
};

class Pivoting {
 public:
  Pivoting(const Share& share, const Crew& crew, Halo<double>& halo, double relax, MPI_Comm comm)
      : share_(share), crew_(crew), halo_(halo), relax_(relax), comm_(comm) {}

  // MatrixError, on all ranks: not even a shift of 1 helps.
  Pivots made() {
    Pivots pivots;
    pivots.values.assign(static_cast<std::size_t>(share_.order.places()), 1);
    add_up_rows();
    while (breaks_down(pivots)) {
      pivots.shift = pivots.shift > 0 ? 2 * pivots.shift : kFirstShift;
      if (pivots.shift > 1)
        throw MatrixError("no incomplete factor is positive: is the matrix positive definite?");
    }
    return pivots;
  }

 private:
  static constexpr double kFirstShift = 1e-3, kLeast = 1e-12;

  // visit(place of the column, value) for each entry of the row at this place.
  template <class Visit>
  void each_entry(std::size_t place, const Visit& visit) const {
    const std::int32_t row = share_.order.row[place];
    if (row < 0) return;
    const auto begin =
        static_cast<std::size_t>(share_.matrix.starts[static_cast<std::size_t>(row)]);
    const auto end =
        static_cast<std::size_t>(share_.matrix.starts[static_cast<std::size_t>(row) + 1]);
    for (std::size_t at = begin; at < end; at++) {
      const auto column = static_cast<std::size_t>(share_.matrix.columns[at]);
      visit(static_cast<std::size_t>(share_.order.place[column]), share_.matrix.values[at]);
    }
  }

  template <class Work>
  void each_place(std::int64_t group, const Work& work) const {
    const auto size = static_cast<std::size_t>(share_.group_places());
    const auto first = static_cast<std::size_t>(group) * size;
    for (std::size_t place = first; place < first + size; place++) work(place);
  }

  // Of each row the sum of what follows the diagonal.
  void add_up_rows() {
    if (relax_ == 0) return;
    after_.assign(static_cast<std::size_t>(share_.order.places()), 0);
    crew_.forward(halo_, after_.data(), [&](int, std::int64_t group) {
      each_place(group, [&](std::size_t place) {
        double sum = 0;
        each_entry(place, [&](std::size_t other, double value) {
          if (other > place) sum += value;
        });
        after_[place] = sum;
      });
    });
  }

  // Whether a pivot, of any rank, is not positive.
  bool breaks_down(Pivots& pivots) {
    std::atomic<int> bad = 0;
    double* values = pivots.values.data();
    crew_.forward(halo_, values, [&](int, std::int64_t group) {
      each_place(group, [&](std::size_t place) {
        double diagonal = 1, less = 0;
        each_entry(place, [&](std::size_t other, double value) {
          if (other == place) diagonal = value * (1 + pivots.shift);
          if (other < place) less += value * dropped(value, other) / values[other];
        });
        const double pivot = diagonal - less;
        if (!(pivot > kLeast * diagonal)) bad.store(1, std::memory_order_relaxed);
        values[place] = pivot;
      });
    });
    halo_.all(values);
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
  std::vector<double> after_;
};

}  // namespace flowos::solve
