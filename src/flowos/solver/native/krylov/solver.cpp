#include "krylov/solver.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/exact_sum.h"
#include "base/for_each.h"
#include "ic/cholesky.h"
#include "ic/pivots.h"
#include "krylov/cg.h"
#include "krylov/defaults.h"
#include "krylov/vectors.h"
#include "matrix/check.h"
#include "matrix/error.h"
#include "matrix/grid.h"
#include "matrix/matrix.h"
#include "matrix/properties.h"
#include "matrix/scaling.h"
#include "multigrid/multigrid.h"
#include "ordering/groups.h"
#include "ordering/ordering.h"
#include "simd/lanes_matrix.h"
#include "threads/exact_reduce.h"
#include "threads/team.h"
#include "threads/thread_executor.h"

namespace flowos::solve {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begun) {
  return std::chrono::duration<double>(Clock::now() - begun).count();
}

// Of work(row) for all rows: the same whatever the threads.
template <class Work>
double sum_over(std::int64_t rows, int threads, const Work& work) {
  return sums_over<1>(0, rows, 1, threads, [&](Groups some, ExactSums<1>& sum) {
    for (std::int64_t row = some.first; row < some.past; ++row) sum[0].add(work(row));
  })[0];
}

// The preconditioner of a matrix in T: one of two.
template <class T>
struct Preconditioners {
  Ordering ordering;
  std::optional<ThreadExecutor> executor;
  std::unique_ptr<IncompleteCholesky<T, ThreadExecutor>> cholesky;
  std::unique_ptr<Multigrid<T>> multigrid;

  template <class Work>
  auto with(const Work& work) {
    return multigrid ? work(multigrid->preconditioner()) : work(*cholesky);
  }
};

}  // namespace

class Solver::Inside {
 public:
  virtual ~Inside() = default;
  virtual Info solve(std::span<const double> b, std::span<double> x, const Goal& goal,
                     const Callback& callback) = 0;
  virtual void precondition(std::span<const double> r, std::span<double> z) = 0;

  SetupSummary setup;
};

namespace {

template <class Index, class Base>
class Solving : public Base {
 public:
  Solving(const Csr<Index>& matrix, const Settings& settings)
      : matrix_(matrix),
        entries_(matrix.starts[matrix.rows]),
        settings_(settings),
        threads_(threads_of(settings.threads)) {
    choose();
    if (settings.precision == Precision::fp64) {
      make(fp64_);
    } else {
      make(fp32_);
    }
  }

  // With 2^a A and 2^e b it is 2^(e-a) x that is computed: `shift` is e - a.
  Info solve(std::span<const double> b, std::span<double> x, const Goal& goal,
             const Callback& callback) override {
    const Clock::time_point begun = Clock::now();
    const double greatest = checked(b, "b", matrix_.rows, threads_);
    checked(x, "x0", matrix_.rows, threads_);
    const int exponent = side_exponent(greatest), shift = exponent - exponent_;
    std::vector<double> times;
    if (exponent != 0) b = times = scaled(b, exponent);
    if (shift != 0) std::ranges::copy(scaled(x, shift), x.begin());
    Goal its = goal;
    its.atol = std::ldexp(goal.atol, exponent);
    Info info;
    info.precision = settings_.precision == Precision::fp64 ? Precision::fp64 : Precision::fp32;
    if (settings_.nullspace == Nullspace::constant) {
      solve_balanced(b, x, its, callback, info);
    } else {
      solve_for(b, x, its, callback, info);
    }
    if (shift != 0) scale_back(b, x, its, shift, info);
    info.seconds = seconds_since(begun);
    return info;
  }

  void precondition(std::span<const double> r, std::span<double> z) override {
    checked(r, "r", matrix_.rows, threads_);
    const auto work = [&](auto& preconditioner) { preconditioner.precondition(r, z); };
    if (settings_.precision == Precision::fp64) {
      fp64_->with(work);
    } else {
      fp32_->with(work);
    }
    if (exponent_ != 0) std::ranges::copy(scaled(z, exponent_), z.begin());
  }

 private:
  Equation equation_of(std::span<const double> b, std::span<double> x) {
    const double unit = unit_of(greatest_of(b, threads_));
    return {.b = b,
            .x = x,
            .unit = unit,
            .norm = size_of(b, unit),
            .residual = [this, b, unit](std::span<const double> at_x, std::span<double> rest) {
              return residual(b, at_x, unit, rest);
            }};
  }

  void solve_for(std::span<const double> b, std::span<double> x, const Goal& goal,
                 const Callback& callback, Info& info) {
    Equation equation = equation_of(b, x);
    if (equation.norm > 0) return iterate(equation, goal, callback, info);
    std::ranges::fill(x, 0.0);
    info.reason = Reason::converged;
  }

  // A x = b where A takes constants to 0: of b the mean is beyond reach. What is left is solved for
  // as closely as makes up for that, where it is small enough.
  void solve_balanced(std::span<const double> b, std::span<double> x, const Goal& goal,
                      const Callback& callback, Info& info) {
    constexpr double kSmall = 0.9;
    std::vector<double> balanced(b.begin(), b.end());
    const double mean = balance(balanced);
    const Equation given = equation_of(b, x);
    const double tolerance = given.tolerance(goal);
    const double beyond =
        std::fabs(mean * given.unit) * std::sqrt(static_cast<double>(matrix_.rows));
    const bool consistent = beyond <= kSmall * tolerance;
    Goal its = goal;
    if (consistent) {
      its.rtol = 0;
      its.atol = std::sqrt(squared(tolerance) - squared(beyond)) / given.unit;
    }
    solve_for(balanced, x, its, callback, info);
    balance(x);
    if (given.norm == 0) return;
    info.residual = given.residual(x, balanced) / given.norm;
    if (!consistent && info.reason == Reason::converged) info.reason = Reason::inconsistent;
  }

  // x, which may be too small then for all its digits: what they were to do is looked at again.
  // Throws MatrixError if x is too large.
  void scale_back(std::span<const double> b, std::span<double> x, const Goal& goal, int shift,
                  Info& info) {
    std::vector<double> kept(x.begin(), x.end());
    bool changed = false;
    for (std::size_t row = 0; row < x.size(); ++row) {
      x[row] = std::ldexp(kept[row], -shift);
      if (!std::isfinite(x[row])) {
        throw MatrixError("x[" + std::to_string(row) +
                          "] is larger than any double: scale A up, or b down");
      }
      changed |= std::ldexp(x[row], shift) != kept[row];
      kept[row] = std::ldexp(x[row], shift);
    }
    if (!changed) return;
    const Equation equation = equation_of(b, kept);
    std::vector<double> rest(x.size());
    const double size = equation.residual(kept, rest);
    info.residual = info.solved_residual = size / equation.norm;
    if (info.reason == Reason::converged && !(size <= equation.tolerance(goal)))
      info.reason = Reason::stagnated;
  }

  // Both triangles are there, and each row is short: b - A x costs a pass over the matrix.
  double residual(std::span<const double> b, std::span<const double> x, double unit,
                  std::span<double> rest) {
    const double size = std::sqrt(sum_over(matrix_.rows, threads_, [&](std::int64_t row) {
      rest[at(row)] = residual_of_lent_row(matrix_, entries_, row, b[at(row)], x.data());
      return squared(rest[at(row)] * unit);
    }));
    if (std::isnan(size)) check_places(matrix_, entries_);
    return size;
  }

  double size_of(std::span<const double> values, double unit) {
    return std::sqrt(sum_over(matrix_.rows, threads_,
                              [&](std::int64_t row) { return squared(values[at(row)] * unit); }));
  }

  // Takes the mean away, and answers it.
  double balance(std::span<double> values) {
    const double mean =
        sum_over(matrix_.rows, threads_, [&](std::int64_t row) { return values[at(row)]; }) /
        static_cast<double>(matrix_.rows);
    share_out(0, matrix_.rows, 1, threads_, [&](Groups rows) {
      for (std::int64_t row = rows.first; row < rows.past; ++row) values[at(row)] -= mean;
    });
    return mean;
  }

  void iterate(Equation& equation, const Goal& goal, const Callback& callback, Info& info) {
    const auto run = [&](double reduction) {
      return [&, reduction](auto& preconditioner) {
        ReliableUpdates(preconditioner, equation, reduction, goal, callback).run(info);
      };
    };
    if (settings_.precision != Precision::fp64) {
      fp32_->with(run(kReduction<float>));
      if (settings_.precision == Precision::fp32) return;
      if (info.reason != Reason::stagnated && info.reason != Reason::indefinite) return;
      if (!fp64_ && !look_again()) return;
      if (!fp64_) make(fp64_);
      info.precision = Precision::fp64;
    }
    fp64_->with(run(kReduction<double>));
  }

  // What the matrix is like decides what is not chosen by hand.
  void choose() {
    const Clock::time_point begun = Clock::now();
    facts_ = check(matrix_, threads_);
    exponent_ = scale_exponent(facts_.evenness);
    if (exponent_ != 0) {
      values_ = scaled({matrix_.values, at(matrix_.starts[matrix_.rows])}, exponent_);
      matrix_.values = values_.data();
      facts_ = facts_of(matrix_, threads_);
    }
    matrix_.repeats = facts_.repeats.data();
    if (settings_.nullspace == Nullspace::constant)
      check_takes_constants_to_zero(matrix_, threads_);
    grid_ = grid_of(matrix_);
    coarse_ =
        settings_.coarse == Coarse::aggregates ||
        (settings_.coarse == Coarse::automatic && coarse_pays(matrix_, grid_, facts_.dominance));
    this->setup.order_seconds = seconds_since(begun);
  }

  std::optional<Grid> grid_of(const Csr<Index>& matrix) const {
    return takes_tiles(settings_) ? find_grid(matrix, threads_) : std::nullopt;
  }

  // A may have been changed in place: what is set up anew is of its values as they are now. False:
  // it cannot be solved with any more. Throws MatrixError if its entries are at other places.
  bool look_again() {
    matrix_.repeats = nullptr;
    check_places(matrix_, entries_);
    if (grid_of(matrix_) != grid_) throw MatrixError(kOverwritten);
    try {
      facts_ = check(matrix_, threads_);
    } catch (const MatrixError&) {
      return false;
    }
    matrix_.repeats = facts_.repeats.data();
    return true;
  }

  template <class T>
  void make(std::unique_ptr<Preconditioners<T>>& preconditioners) {
    preconditioners = std::make_unique<Preconditioners<T>>();
    if (coarse_) {
      make_multigrid(preconditioners->multigrid);
    } else {
      make_cholesky(*preconditioners);
    }
  }

  template <class T>
  void make_multigrid(std::unique_ptr<Multigrid<T>>& multigrid) {
    multigrid = std::make_unique<Multigrid<T>>(matrix_, grid_, facts_.dominance, threads_);
    const MultigridSummary its = multigrid->summary();
    SetupSummary& setup = this->setup;
    setup.blocks = its.blocks;
    setup.block_rows = its.block_rows;
    setup.colours = its.colours;
    setup.levels = static_cast<int>(its.rows.size());
    setup.fill = its.fill;
    setup.bytes_per_iteration = its.bytes_per_iteration;
    setup.flops_per_iteration = its.flops_per_iteration;
    setup.memory_bytes = its.memory_bytes;
    setup.order_seconds += its.order_seconds;
    setup.store_seconds = its.store_seconds;
    setup.coarse_seconds = its.coarse_seconds;
  }

  template <class T>
  void make_cholesky(Preconditioners<T>& preconditioners) {
    SetupSummary& setup = this->setup;
    Clock::time_point begun = Clock::now();
    Ordered ordered = grid_ ? ordered_in_tiles(*grid_, settings_, kLanes<T>, threads_)
                            : ordered_in_grown(matrix_, settings_, kLanes<T>, threads_);
    setup.blocks = std::move(ordered.blocks);
    const Ordering& ordering = preconditioners.ordering = std::move(ordered.ordering);
    setup.block_rows = ordering.block_rows;
    setup.colours = ordering.colours();
    setup.order_seconds += seconds_since(begun);
    begun = Clock::now();
    const Dropping dropping = dropping_of(settings_, facts_.dominance, facts_.evenness);
    setup.relax = dropping.relax;
    ThreadExecutor& executor =
        preconditioners.executor.emplace(ordering.colour_starts, ordering.block_rows, threads_);
    const Pivots pivots = Pivoting(matrix_, ordering, executor, dropping).build();
    setup.shift = pivots.shift;
    setup.eisenstat = true;
    setup.factor_seconds = seconds_since(begun);
    begun = Clock::now();
    auto& cholesky = preconditioners.cholesky;
    cholesky = std::make_unique<IncompleteCholesky<T, ThreadExecutor>>(matrix_, ordering, executor,
                                                                       pivots, facts_.evenness);
    setup.store_seconds = seconds_since(begun);
    setup.bytes_per_iteration = cholesky->bytes_per_iteration();
    setup.flops_per_iteration = cholesky->flops_per_iteration();
    setup.memory_bytes = cholesky->memory_bytes();
    const auto stored =
        static_cast<double>(matrix_.starts[matrix_.rows]) - static_cast<double>(matrix_.rows);
    setup.fill = stored > 0 ? static_cast<double>(cholesky->entries()) / stored : 1;
  }

  Csr<Index> matrix_;
  Index entries_;
  std::vector<double> values_;  // its own, where they are not those that came
  int exponent_ = 0;            // they are 2^exponent_ times as large
  Settings settings_;
  int threads_;
  std::optional<Grid> grid_;
  Facts facts_;
  bool coarse_ = false;
  std::unique_ptr<Preconditioners<float>> fp32_;
  std::unique_ptr<Preconditioners<double>> fp64_;
};

}  // namespace

template <class Index>
Solver::Solver(const Csr<Index>& matrix, const Settings& settings)
    : inside_(std::make_unique<Solving<Index, Inside>>(matrix, settings)) {}

Solver::~Solver() = default;
Solver::Solver(Solver&&) noexcept = default;
Solver& Solver::operator=(Solver&&) noexcept = default;

const SetupSummary& Solver::setup() const { return inside_->setup; }

Info Solver::solve(std::span<const double> b, std::span<double> x, const Goal& goal,
                   const Callback& callback) {
  return inside_->solve(b, x, goal, callback);
}

void Solver::precondition(std::span<const double> r, std::span<double> z) {
  inside_->precondition(r, z);
}

template Solver::Solver(const Csr<std::int32_t>&, const Settings&);
template Solver::Solver(const Csr<std::int64_t>&, const Settings&);

}  // namespace flowos::solve
