#pragma once

#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/exact_sum.h"
#include "base/storage.h"
#include "krylov/cg.h"
#include "krylov/solver.h"
#include "matrix/scaling.h"
#include "mpi/links.h"
#include "mpi/rank_executor.h"
#include "mpi/share.h"
#include "ordering/groups.h"

namespace flowos::solve {

// All ranks together solve with their shares of one matrix: what solver.cpp does alone, and the
// same bits.
class RankSolver {
 public:
  RankSolver(const Share& share, int threads, MPI_Comm comm)
      : share_(share),
        comm_(comm),
        executor_(links_of(share), share.order.groups(), share.order.block_rows, share.order.lanes,
                  threads, comm),
        values_(static_cast<std::size_t>(share.order.places())) {}

  RankExecutor& executor() { return executor_; }

  // Continues from x and the counts of info, with a preconditioner in T. b and x by row; x then has
  // the values of other ranks' rows too. The goal names max_iterations, as no rank knows by itself
  // how many rows there are.
  template <class T, Preconditioner M>
  void solve(M& preconditioner, std::span<const double> b, std::span<double> x, const Goal& goal,
             Info& info) {
    const double start = MPI_Wtime();
    info.precision = sizeof(T) == sizeof(float) ? Precision::fp32 : Precision::fp64;
    Equation equation{.b = b, .x = x, .unit = unit_of(greatest_of(b)), .norm = 0, .residual = {}};
    equation.norm = size_of(b, equation.unit);
    equation.residual = [&](std::span<const double> at_x, std::span<double> rest) {
      return residual(b, at_x, equation.unit, rest);
    };
    if (equation.norm > 0) {
      ReliableUpdates(preconditioner, equation, kReduction<T>, goal, Callback{}).run(info);
    } else {
      std::ranges::fill(x, 0.0);
      info.reason = Reason::converged;
    }
    fetch(x, x);
    info.seconds += MPI_Wtime() - start;
  }

 private:
  // whole: the same with the values of others' rows.
  void fetch(std::span<const double> own, std::span<double> whole) {
    const Line<std::int32_t>& place = share_.order.place;
    for (std::size_t row = 0; row < own.size(); row++)
      values_[static_cast<std::size_t>(place[row])] = own[row];
    executor_.fetch(values_.data());
    for (std::size_t row = 0; row < own.size(); row++)
      whole[row] = values_[static_cast<std::size_t>(place[row])];
  }

  double greatest_of(std::span<const double> values) const {
    double greatest = 0;
    share_.each_own_row(
        [&](std::size_t row) { greatest = std::max(greatest, std::fabs(values[row])); });
    MPI_Allreduce(MPI_IN_PLACE, &greatest, 1, MPI_DOUBLE, MPI_MAX, comm_);
    return greatest;
  }

  double size_of(std::span<const double> values, double unit) const {
    ExactSums<1> all;
    executor_.add_over(
        share_.order.block_rows,
        [&](Groups groups, ExactSums<1>& sum) {
          each_row(share_.order, groups,
                   [&](std::size_t row, std::size_t) { sum[0].add(squared(values[row] * unit)); });
        },
        all);
    return std::sqrt(executor_.total(all)[0]);
  }

  double residual(std::span<const double> b, std::span<const double> x, double unit,
                  std::span<double> rest) {
    std::vector<double> whole(x.size());
    fetch(x, whole);
    executor_.each([&](Groups groups) {
      each_row(share_.order, groups, [&](std::size_t row, std::size_t) {
        rest[row] = residual_of_row(share_.matrix.view(), static_cast<std::int64_t>(row), b[row],
                                    whole.data());
      });
    });
    return size_of(rest, unit);
  }

  const Share& share_;
  MPI_Comm comm_;
  RankExecutor executor_;
  std::vector<double> values_;  // by place
};

}  // namespace flowos::solve
