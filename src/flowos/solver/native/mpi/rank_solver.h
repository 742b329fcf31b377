#pragma once

#include <mpi.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "../coarse_level.h"
#include "../matrix.h"
#include "../solver.h"
#include "crew.h"
#include "halo.h"
#include "links.h"
#include "pivots.h"
#include "share.h"
#include "sums.h"
#include "sweeps.h"

namespace flowos::solve {

// Conjugate gradients of all ranks together on their shares of one matrix, in Value: two sweeps and
// one reduction for each iteration. The residual is computed anew in fp64 where the recurrence says
// that it is small enough, and in fp32 whenever it fell a hundredfold, to go on from it (reliable
// updates: Sleijpen and van der Vorst, Computing 56, 1996).
template <class Value>
class RankSolver {
 public:
  // MatrixError, on all ranks.
  RankSolver(const Share& share, double relax, int threads, MPI_Comm comm)
      : share_(share),
        comm_(comm),
        links_(links_of(share)),
        crew_(links_, threads),
        halo_(share, links_, comm),
        exact_halo_(share, links_, comm),
        one_(threads, comm),
        three_(threads, comm),
        v_(static_cast<std::size_t>(share.order.places())) {
    const Pivots pivots = Pivoting(share, crew_, exact_halo_, relax, comm).made();
    shift_ = pivots.shift;
    scale_.resize(pivots.values.size());
    for (std::size_t place = 0; place < scale_.size(); place++)
      scale_[place] = 1 / std::sqrt(pivots.values[place]);
    store(pivots.values);
  }

  double shift() const { return shift_; }

  // What an iteration must move, of all ranks.
  std::int64_t bytes_per_iteration() const {
    constexpr std::int64_t kVectors = 14;  // 9 backward, 5 forward
    std::int64_t own_places = 0, all = 0;
    for (std::size_t group = 0; group < share_.group.size(); group++)
      if (share_.is_own(static_cast<std::int64_t>(group))) own_places += share_.group_places();
    const std::int64_t mine = kVectors * own_places * static_cast<std::int64_t>(sizeof(Value)) +
                              matrix_->lower_bytes() + matrix_->upper_bytes();
    MPI_Allreduce(&mine, &all, 1, MPI_INT64_T, MPI_SUM, comm_);
    return all;
  }

  // b and x by row; x: where to begin, and the answer, of own rows.
  Info solve(std::span<const double> b, std::span<double> x, const Goal& goal) {
    const double start = MPI_Wtime();
    Info info{.precision = sizeof(Value) == sizeof(float) ? Precision::fp32 : Precision::fp64};
    norm_ = std::sqrt(squares_of(b));
    if (norm_ > 0) {
      iterate(b, x, goal, info);
    } else {
      std::fill(x.begin(), x.end(), 0.0);
      info.reason = Reason::converged;
    }
    info.seconds = MPI_Wtime() - start;
    return info;
  }

  // Takes the values of others' rows.
  void fetch(std::span<double> x) {
    std::vector<double> values(static_cast<std::size_t>(share_.order.places()));
    for (std::size_t row = 0; row < x.size(); row++) values[place_of(row)] = x[row];
    exact_halo_.all(values.data());
    for (std::size_t row = 0; row < x.size(); row++) x[row] = values[place_of(row)];
  }

 private:
  static constexpr bool kReliable = sizeof(Value) == sizeof(float);
  static constexpr double kFall = 1e-4;  // of ||r||^2 until it is computed anew
  static constexpr int kMostStalls = 3;

  std::size_t place_of(std::size_t row) const {
    return static_cast<std::size_t>(share_.order.place[row]);
  }

  // The matrix scaled to pivots of 1.
  void store(const std::vector<double>& pivots) {
    std::vector<double> scaled(share_.matrix.values.size());
    crew_.each([&](int, std::int64_t group) {
      each_row(group, [&](std::size_t row, std::size_t place) {
        const auto end = static_cast<std::size_t>(share_.matrix.starts[row + 1]);
        for (auto at = static_cast<std::size_t>(share_.matrix.starts[row]); at < end; at++) {
          const auto column = static_cast<std::size_t>(share_.matrix.columns[at]);
          const std::size_t other = place_of(column);
          scaled[at] = share_.matrix.values[at] * scale_[place] * scale_[other];
          if (other == place)
            v_.middle[place] = static_cast<Value>(share_.matrix.values[at] / pivots[place] - 2);
        }
      });
    });
    Csr<std::int32_t> view = share_.matrix.view();
    view.values = scaled.data();
    matrix_.emplace(view, share_.order, 1.0, crew_.threads());
  }

  template <class Work>
  void each_row(std::int64_t group, const Work& work) const {
    const auto size = static_cast<std::size_t>(share_.group_places());
    const auto first = static_cast<std::size_t>(group) * size;
    for (std::size_t place = first; place < first + size; place++)
      if (const std::int32_t row = share_.order.row[place]; row >= 0)
        work(static_cast<std::size_t>(row), place);
  }

  double squares_of(std::span<const double> values) {
    crew_.each([&](int thread, std::int64_t group) {
      double sum = 0;
      each_row(group, [&](std::size_t row, std::size_t) { sum += values[row] * values[row]; });
      one_.add(thread, 0, sum);
    });
    return one_.taken()[0];
  }

  // rest = b - A x; answers ||rest|| / ||b||.
  double true_residual(std::span<const double> b, std::span<double> x, std::span<double> rest) {
    fetch(x);
    crew_.each([&](int, std::int64_t group) {
      each_row(group, [&](std::size_t row, std::size_t) {
        double sum = b[row];
        const auto end = static_cast<std::size_t>(share_.matrix.starts[row + 1]);
        for (auto at = static_cast<std::size_t>(share_.matrix.starts[row]); at < end; at++)
          sum -= share_.matrix.values[at] * x[static_cast<std::size_t>(share_.matrix.columns[at])];
        rest[row] = sum;
      });
    });
    return std::sqrt(squares_of(rest)) / norm_;
  }

  // r from a residual; answers r'r.
  double load(std::span<const double> rest) {
    crew_.each([&](int, std::int64_t group) {
      each_row(group, [&](std::size_t row, std::size_t place) {
        v_.r[place] = static_cast<Value>(scale_[place] * rest[row] / norm_);
      });
    });
    crew_.forward(halo_, v_.r.data(), [&](int thread, std::int64_t group) {
      one_.add(thread, 0, sweeps().begin(group));
    });
    return one_.taken()[0];
  }

  // x += what was gone, which begins anew.
  void unload(std::span<double> x) {
    crew_.each([&](int, std::int64_t group) {
      each_row(group, [&](std::size_t row, std::size_t place) {
        x[row] += scale_[place] * norm_ * static_cast<double>(v_.x[place]);
        v_.x[place] = 0;
      });
    });
  }

  Sweeps<Value> sweeps() { return {matrix_->view(), v_}; }

  void iterate(std::span<const double> b, std::span<double> x, const Goal& goal, Info& info) {
    std::vector<double> rest(x.size());
    info.residual = true_residual(b, x, rest);
    const double wanted = std::max(goal.rtol, goal.atol / norm_);
    const std::int64_t most = goal.most_iterations ? goal.most_iterations : 10 * share_.order.rows;
    if (info.residual <= wanted) {
      info.reason = Reason::converged;
      return;
    }
    for (auto* vector : {&v_.p, &v_.t, &v_.s, &v_.x})
      std::fill(vector->begin(), vector->end(), Value(0));
    double alpha = 0, beta = 0, loaded = load(rest);
    double target = loaded * square(wanted / info.residual);  // of r'r
    int stalls = 0;
    while (info.iterations < most) {
      const auto [rr, pw, ww] = products(alpha, beta);
      info.iterations++;
      if (!(pw > 0)) {
        info.reason = Reason::indefinite;
        break;
      }
      alpha = rr / pw;
      const double next = alpha * alpha * ww - rr;  // r'r after the step (Meurant 1987)
      beta = next / rr;
      const bool small = !(next > target);
      if (!small && !(kReliable && next < kFall * loaded)) continue;
      const double before = info.residual;
      crew_.each([&](int, std::int64_t group) { sweeps().step(group, static_cast<Value>(alpha)); });
      alpha = 0;
      unload(x);
      info.residual = true_residual(b, x, rest);
      info.fp64_updates++;
      if (info.residual <= wanted) {
        info.reason = Reason::converged;
        break;
      }
      stalls = info.residual > before / 2 ? stalls + 1 : 0;
      if (!(stalls < kMostStalls)) {
        info.reason = Reason::stagnated;
        break;
      }
      if (kReliable || !(next > 0)) {
        loaded = load(rest);
        beta = loaded / rr;
        if (!(beta < 10)) beta = 0;
        target = loaded * square(wanted / info.residual);
      } else {
        target *= std::min(0.25, square(0.8 * wanted / info.residual));
      }
    }
    finish(b, x, rest, alpha, info);
  }

  // Where it ended between two looks at the residual, x takes what was gone.
  void finish(std::span<const double> b, std::span<double> x, std::span<double> rest, double alpha,
              Info& info) {
    if (info.reason != Reason::iterations && info.reason != Reason::indefinite) return;
    if (info.reason == Reason::iterations)
      crew_.each([&](int, std::int64_t group) { sweeps().step(group, static_cast<Value>(alpha)); });
    unload(x);
    info.residual = true_residual(b, x, rest);
  }

  static double square(double value) { return value * value; }

  // Both sweeps; r'r, p'w and w'w.
  std::array<double, 3> products(double alpha, double beta) {
    const auto step = static_cast<Value>(alpha), turn = static_cast<Value>(beta);
    crew_.backward(halo_, v_.t.data(), [&](int thread, std::int64_t group) {
      three_.add(thread, 0, sweeps().backward(group, step, turn));
    });
    crew_.forward(halo_, v_.s.data(), [&](int thread, std::int64_t group) {
      const auto [pw, ww] = sweeps().forward(group);
      three_.add(thread, 1, pw);
      three_.add(thread, 2, ww);
    });
    return three_.taken();
  }

  const Share& share_;
  MPI_Comm comm_;
  std::vector<ColourLinks> links_;
  Crew crew_;
  Halo<Value> halo_;
  Halo<double> exact_halo_;
  Sums<1> one_;
  Sums<3> three_;
  Vectors<Value> v_;
  std::vector<double> scale_;
  std::optional<LanesMatrix<Value>> matrix_;
  double shift_ = 0, norm_ = 1;
};

}  // namespace flowos::solve
