#include "solver.h"

#include <algorithm>
#include <array>
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

#include "check_matrix.h"
#include "cholesky.h"
#include "coarse.h"
#include "coarse_kernels.h"
#include "coarse_level.h"
#include "evenness.h"
#include "iterate.h"
#include "matrix.h"
#include "matrix_error.h"
#include "ordering.h"
#include "ordering_parts.h"
#include "pivots.h"
#include "team.h"

namespace flowos::solve {
namespace {

constexpr int kBrickRows = 512, kGrownRows = 32, kBrickColours = 2;
constexpr std::int64_t kRun = 4096;  // rows whose sums are added at once, whatever the threads

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begun) {
  return std::chrono::duration<double>(Clock::now() - begun).count();
}

// Of work(row) for all rows, added in the same order whatever the threads.
template <class Work>
double sum_over(std::int64_t rows, int threads, const Work& work) {
  std::vector<double> sums(at((rows + kRun - 1) / kRun));
  share_out(0, static_cast<std::int64_t>(sums.size()), kRun, threads, [&](Groups runs) {
    for (std::int64_t run = runs.first; run < runs.past; ++run) {
      double sum = 0;
      for (std::int64_t row = run * kRun; row < std::min(rows, (run + 1) * kRun); ++row) {
        sum += work(row);
      }
      sums[at(run)] = sum;
    }
  });
  return sum_in_order(sums);
}

void check_vector(std::span<const double> values, const char* name, std::int64_t rows,
                  int threads) {
  if (static_cast<std::int64_t>(values.size()) != rows) {
    throw MatrixError(std::string(name) + " has " + std::to_string(values.size()) +
                      " values, but the matrix has " + std::to_string(rows) + " rows");
  }
  const double bad = sum_over(
      rows, threads, [&](std::int64_t row) { return std::isfinite(values[at(row)]) ? 0.0 : 1.0; });
  if (bad == 0) return;
  const auto first =
      std::ranges::find_if(values, [](double value) { return !std::isfinite(value); });
  throw MatrixError(std::string(name) + "[" + std::to_string(first - values.begin()) +
                    "] is not a finite number");
}

// How a matrix is solved with in T: by one of two methods.
template <class T>
struct Methods {
  std::unique_ptr<Cholesky<T>> cholesky;
  std::unique_ptr<Multigrid<T>> multigrid;

  template <class Work>
  auto with(const Work& work) {
    return multigrid ? work(*multigrid) : work(*cholesky);
  }
};

}  // namespace

class Solver::Inside {
 public:
  virtual ~Inside() = default;
  virtual Info solve(std::span<const double> b, std::span<double> x, const Goal& goal,
                     const Watch& watch) = 0;
  virtual void precondition(std::span<const double> r, std::span<double> z) = 0;

  Made made;
};

namespace {

template <class Index, class Base>
class Solving : public Base {
 public:
  Solving(const Csr<Index>& matrix, const Settings& settings)
      : matrix_(matrix), settings_(settings), threads_(threads_of(settings.threads)) {
    check(matrix, threads_);
    if (settings.nullspace == Nullspace::constant) check_takes_constants_to_zero(matrix, threads_);
    choose();
    if (settings.precision == Precision::fp64) {
      make(fp64_);
    } else {
      make(fp32_);
    }
  }

  Info solve(std::span<const double> b, std::span<double> x, const Goal& goal,
             const Watch& watch) override {
    const Clock::time_point begun = Clock::now();
    check_vector(b, "b", matrix_.rows, threads_);
    check_vector(x, "x", matrix_.rows, threads_);
    std::vector<double> balanced;
    if (settings_.nullspace == Nullspace::constant) {
      balanced.assign(b.begin(), b.end());
      balance(balanced);
      b = balanced;
    }
    Info info;
    info.precision = settings_.precision == Precision::fp64 ? Precision::fp64 : Precision::fp32;
    Equation equation{.b = b, .x = x, .norm = norm(b), .residual = {}};
    equation.residual = [&](std::span<const double> at_x, std::span<double> rest) {
      return residual(b, at_x, rest);
    };
    if (equation.norm == 0) {
      std::ranges::fill(x, 0.0);
      info.reason = Reason::converged;
    } else {
      iterate(equation, goal, watch, info);
    }
    if (settings_.nullspace == Nullspace::constant) balance(x);
    info.seconds = seconds_since(begun);
    return info;
  }

  void precondition(std::span<const double> r, std::span<double> z) override {
    check_vector(r, "r", matrix_.rows, threads_);
    const auto work = [&](auto& method) { method.precondition(r, z); };
    if (settings_.precision == Precision::fp64) {
      fp64_->with(work);
    } else {
      fp32_->with(work);
    }
  }

 private:
  // Both triangles are there, and each row is short: b - A x costs a pass over the matrix.
  double residual(std::span<const double> b, std::span<const double> x, std::span<double> rest) {
    return std::sqrt(sum_over(matrix_.rows, threads_, [&](std::int64_t row) {
      double sum = b[at(row)];
      const Index past = matrix_.starts[row + 1];
      for (Index k = matrix_.starts[row]; k < past; ++k) {
        sum -= matrix_.values[k] * x[static_cast<std::size_t>(matrix_.columns[k])];
      }
      rest[at(row)] = sum;
      return sum * sum;
    }));
  }

  // Scaled by the largest, so that squares neither overflow nor vanish.
  double norm(std::span<const double> values) {
    double greatest = 0;
    for (const double value : values) greatest = std::max(greatest, std::fabs(value));
    if (greatest == 0) return 0;
    return greatest * std::sqrt(sum_over(matrix_.rows, threads_, [&](std::int64_t row) {
             return (values[at(row)] / greatest) * (values[at(row)] / greatest);
           }));
  }

  // Takes the mean away.
  void balance(std::span<double> values) {
    const double mean =
        sum_over(matrix_.rows, threads_, [&](std::int64_t row) { return values[at(row)]; }) /
        static_cast<double>(matrix_.rows);
    share_out(0, matrix_.rows, 1, threads_, [&](Groups rows) {
      for (std::int64_t row = rows.first; row < rows.past; ++row) values[at(row)] -= mean;
    });
  }

  void iterate(Equation& equation, const Goal& goal, const Watch& watch, Info& info) {
    constexpr double kFall32 = 1e-2, kFall64 = 1e-11;
    const auto run = [&](double fall) {
      return [&, fall](auto& method) { Iteration(method, equation, fall, goal, watch).run(info); };
    };
    if (settings_.precision != Precision::fp64) {
      fp32_->with(run(kFall32));
      if (settings_.precision == Precision::fp32) return;
      if (info.reason != Reason::stagnated && info.reason != Reason::indefinite) return;
      if (!fp64_) make(fp64_);
      info.precision = Precision::fp64;
    }
    fp64_->with(run(kFall64));
  }

  // What the matrix is like decides what is not chosen by hand.
  void choose() {
    const Clock::time_point begun = Clock::now();
    grid_ = settings_.colours <= kBrickColours ? find_grid(matrix_, threads_) : std::nullopt;
    dominance_ = dominance_of(matrix_, threads_);
    evenness_ = evenness_of(matrix_, threads_);
    coarse_ = settings_.coarse == Coarse::aggregates ||
              (settings_.coarse == Coarse::automatic && is_worth_levels());
    this->made.order_seconds = seconds_since(begun);
  }

  // An iteration on an even matrix reads so little that many are done before levels are made.
  bool is_worth_levels() const {
    constexpr std::int64_t kManyEven = 6'000'000;  // where one solution takes as long either way
    if (evenness_.is_even() && grid_ && matrix_.rows < kManyEven) return false;
    return coarse_pays(matrix_, grid_, dominance_);
  }

  template <class T>
  void make(std::unique_ptr<Methods<T>>& methods) {
    methods = std::make_unique<Methods<T>>();
    if (coarse_) {
      make_multigrid(methods->multigrid);
    } else {
      make_cholesky(methods->cholesky);
    }
  }

  template <class T>
  void make_multigrid(std::unique_ptr<Multigrid<T>>& multigrid) {
    multigrid = std::make_unique<Multigrid<T>>(matrix_, grid_, dominance_, threads_);
    const MultigridMade& its = multigrid->made();
    Made& made = this->made;
    made.blocks = its.blocks;
    made.block_rows = its.block_rows;
    made.colours = its.colours;
    made.levels = static_cast<int>(its.rows.size());
    made.fill = its.fill;
    made.bytes_per_iteration = its.bytes_per_iteration;
    made.memory_bytes = its.memory_bytes;
    made.order_seconds += its.order_seconds;
    made.store_seconds = its.store_seconds;
    made.coarse_seconds = its.coarse_seconds;
  }

  Ordering ordered(int lanes) {
    Made& made = this->made;
    if (grid_) {
      const std::array<int, 3> brick =
          fit_brick(*grid_, settings_.block_rows > 0 ? settings_.block_rows : kBrickRows, lanes);
      made.blocks = "bricks " + std::to_string(brick[2]) + "x" + std::to_string(brick[1]) + "x" +
                    std::to_string(brick[0]);
      return order_bricks(*grid_, brick, lanes, threads_);
    }
    const int rows = settings_.block_rows > 0 ? settings_.block_rows : kGrownRows;
    made.blocks = "grown " + std::to_string(rows);
    return order_graph(matrix_, rows, settings_.colours, lanes, threads_);
  }

  // Drops that are made up for help where the coefficients are smooth and rows add up to nearly 0.
  double relax() const {
    constexpr double kSmooth = 0.95, kTight = 0.9, kAlike = 10;
    if (settings_.relax >= 0) return settings_.relax;
    const bool tight = dominance_.everywhere && dominance_.share >= kTight && evenness_.negative;
    return tight && evenness_.greatest <= kAlike * evenness_.least ? kSmooth : 0;
  }

  template <class T>
  void make_cholesky(std::unique_ptr<Cholesky<T>>& cholesky) {
    Made& made = this->made;
    Clock::time_point begun = Clock::now();
    Ordering ordering = ordered(kLanes<T>);
    made.block_rows = ordering.block_rows;
    made.colours = ordering.colours();
    made.order_seconds += seconds_since(begun);
    begun = Clock::now();
    made.relax = relax();
    const Pivots pivots = pivots_of(matrix_, ordering, made.relax, threads_);
    made.shift = pivots.shift;
    made.eisenstat = true;
    made.factor_seconds = seconds_since(begun);
    begun = Clock::now();
    cholesky =
        std::make_unique<Cholesky<T>>(matrix_, std::move(ordering), pivots, evenness_, threads_);
    made.store_seconds = seconds_since(begun);
    made.bytes_per_iteration = cholesky->bytes_per_iteration();
    made.memory_bytes = cholesky->memory_bytes();
    const auto stored =
        static_cast<double>(matrix_.starts[matrix_.rows]) - static_cast<double>(matrix_.rows);
    made.fill = stored > 0 ? static_cast<double>(cholesky->entries()) / stored : 1;
  }

  Csr<Index> matrix_;
  Settings settings_;
  int threads_;
  std::optional<Grid> grid_;
  Dominance dominance_;
  Evenness evenness_;
  bool coarse_ = false;
  std::unique_ptr<Methods<float>> fp32_;
  std::unique_ptr<Methods<double>> fp64_;
};

}  // namespace

template <class Index>
Solver::Solver(const Csr<Index>& matrix, const Settings& settings)
    : inside_(std::make_unique<Solving<Index, Inside>>(matrix, settings)) {}

Solver::~Solver() = default;
Solver::Solver(Solver&&) noexcept = default;
Solver& Solver::operator=(Solver&&) noexcept = default;

const Made& Solver::made() const { return inside_->made; }

Info Solver::solve(std::span<const double> b, std::span<double> x, const Goal& goal,
                   const Watch& watch) {
  return inside_->solve(b, x, goal, watch);
}

void Solver::precondition(std::span<const double> r, std::span<double> z) {
  inside_->precondition(r, z);
}

template Solver::Solver(const Csr<std::int32_t>&, const Settings&);
template Solver::Solver(const Csr<std::int64_t>&, const Settings&);

}  // namespace flowos::solve
