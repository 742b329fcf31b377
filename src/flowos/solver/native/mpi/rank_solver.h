#pragma once

#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "../evenness.h"
#include "../iterate.h"
#include "../pivots.h"
#include "../solver.h"
#include "crew.h"
#include "halo.h"
#include "links.h"
#include "rank_cholesky.h"
#include "rank_pivots.h"
#include "share.h"
#include "sums.h"

namespace flowos::solve {

// All ranks together solve with their shares of one matrix, in T.
template <class T>
class RankSolver {
 public:
  // MatrixError, on all ranks.
  RankSolver(const Share& share, double relax, const Evenness& evenness, int threads, MPI_Comm comm)
      : share_(share),
        links_(links_of(share)),
        crew_(links_, threads),
        halo_(share, links_, comm),
        squares_(threads, comm),
        values_(static_cast<std::size_t>(share.order.places())),
        pivots_(RankPivoting(share, crew_, halo_, relax, comm).made()),
        cholesky_(share, links_, pivots_, evenness, crew_, comm) {}

  double shift() const { return pivots_.shift; }
  std::int64_t bytes_per_iteration() const { return cholesky_.bytes_per_iteration(); }

  // b and x by row. x: where to begin, and the answer, of others' rows too. The goal names its most
  // iterations, as no rank knows by itself how many rows there are.
  Info solve(std::span<const double> b, std::span<double> x, const Goal& goal) {
    const double start = MPI_Wtime();
    Info info{.precision = sizeof(T) == sizeof(float) ? Precision::fp32 : Precision::fp64};
    Equation equation{.b = b, .x = x, .norm = norm(b), .residual = {}};
    equation.residual = [&](std::span<const double> at_x, std::span<double> rest) {
      return residual(b, at_x, rest);
    };
    if (equation.norm > 0) {
      Iteration(cholesky_, equation, kFall, goal, Watch{}).run(info);
    } else {
      std::ranges::fill(x, 0.0);
      info.reason = Reason::converged;
    }
    fetch(x, x);
    info.seconds = MPI_Wtime() - start;
    return info;
  }

 private:
  static constexpr double kFall = sizeof(T) == sizeof(float) ? 1e-3 : 1e-11;

  // whole: the same with the values of others' rows.
  void fetch(std::span<const double> own, std::span<double> whole) {
    const std::vector<std::int32_t>& place = share_.order.place;
    for (std::size_t row = 0; row < own.size(); row++)
      values_[static_cast<std::size_t>(place[row])] = own[row];
    halo_.all(values_.data());
    for (std::size_t row = 0; row < own.size(); row++)
      whole[row] = values_[static_cast<std::size_t>(place[row])];
  }

  double norm(std::span<const double> values) {
    crew_.each([&](int thread, std::int64_t group) {
      double sum = 0;
      share_.each_row(group,
                      [&](std::size_t row, std::size_t) { sum += values[row] * values[row]; });
      squares_.add(thread, 0, sum);
    });
    return std::sqrt(squares_.taken()[0]);
  }

  double residual(std::span<const double> b, std::span<const double> x, std::span<double> rest) {
    std::vector<double> whole(x.size());
    fetch(x, whole);
    crew_.each([&](int, std::int64_t group) {
      share_.each_row(group, [&](std::size_t row, std::size_t) {
        double sum = b[row];
        const auto end = static_cast<std::size_t>(share_.matrix.starts[row + 1]);
        for (auto at = static_cast<std::size_t>(share_.matrix.starts[row]); at < end; at++)
          sum -=
              share_.matrix.values[at] * whole[static_cast<std::size_t>(share_.matrix.columns[at])];
        rest[row] = sum;
      });
    });
    return norm(rest);
  }

  const Share& share_;
  std::vector<ColourLinks> links_;
  Crew crew_;
  Halo<double> halo_;
  Sums<1> squares_;
  std::vector<double> values_;  // by place
  Pivots pivots_;
  RankCholesky<T> cholesky_;
};

}  // namespace flowos::solve
