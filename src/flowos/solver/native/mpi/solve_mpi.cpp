// Conjugate gradients preconditioned by incomplete Cholesky factors in block multi-colour order, or
// by a multigrid cycle, over MPI ranks and OpenMP threads. x is the same bits for any number of
// both, and those that the library gives.
//
//   solve_mpi poisson:NXxNYxNZ|g3like|FILE.mtx [options]       (see kUsage)
//
// The right-hand side is ones for Poisson's equation, else uniform in [-1, 1) from the seed; x
// begins at 0. Ordering, blocks and colours are those of the whole matrix; a rank owns whole groups
// of every colour. Set-up and solution are repeated for the time asked for. Rank 0 prints one JSON
// object: what was solved and how, and readings, each a list with one value for each repetition:
//   total, setup, iteration  second; of the slowest rank; setup: from the rows to the factor
//   bandwidth                byte/s, what an iteration must move over its time; its bytes and flops
//                            are among the notes
//   triad                    byte/s, STREAM before and after (see triad.h)
// The residual is computed anew from the entries; where it is above the tolerance, or x differs
// between two repetitions, the program fails.

#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "krylov/cg.h"
#include "krylov/defaults.h"
#include "krylov/solver.h"
#include "matrix/error.h"
#include "matrix/scaling.h"
#include "mpi/answer.h"
#include "mpi/level_owners.h"
#include "mpi/metis_split.h"
#include "mpi/options.h"
#include "mpi/partition.h"
#include "mpi/plan.h"
#include "mpi/problem.h"
#include "mpi/rank_methods.h"
#include "mpi/rank_solver.h"
#include "mpi/share.h"
#include "mpi/threads.h"
#include "mpi/triad.h"
#include "mpi/unbound.h"
#include "multigrid/hierarchy.h"
#include "ordering/ordering.h"
#include "simd/lanes_matrix.h"

// NOLINTBEGIN(bugprone-casting-through-void): Open MPI's constants are such casts.
namespace flowos::solve {
namespace {

constexpr int kFailed = 1, kTriadPasses = 5;
constexpr int kMaxCpus = 4096;

// What one repetition took and gave, on all ranks the same.
struct Turn {
  double setup = 0, total = 0;
  Info info;
  SetupSummary set_up;
  double residual = 0;
  std::string x;
  std::vector<double> so_far;  // x where fp32 did not get there, by row of the whole
};

class Session {
 public:
  Session(const Options& options, MPI_Comm comm)
      : options_(options), comm_(comm), threads_(threads_wanted()) {
    MPI_Comm_rank(comm, &rank_);
    MPI_Comm_size(comm, &ranks_);
    problem_ = problem_of(options, threads_, comm);
  }

  // Throws UsageError or MatrixError on all ranks; std::runtime_error if the answer is wrong.
  void run() {
    measure_triad();
    const double start = MPI_Wtime();
    int again = 1;
    while (again) {
      turns_.push_back(turn());
      check();
      again = MPI_Wtime() - start < options_.seconds;
      MPI_Bcast(&again, 1, MPI_INT, 0, comm_);
    }
    measure_triad();
    const int cpus = count_cpus();
    if (rank_ == 0) print(cpus);
  }

 private:
  void measure_triad() {
    if (options_.triad_elements == 0) return;
    const std::vector<double> rates =
        Triad(options_.triad_elements, threads_, comm_).rates(kTriadPasses);
    triad_.insert(triad_.end(), rates.begin(), rates.end());
  }

  double slowest(double seconds) const {
    double all = 0;
    MPI_Allreduce(&seconds, &all, 1, MPI_DOUBLE, MPI_MAX, comm_);
    return all;
  }

  // In fp32 by default; continues in fp64 where that does not converge.
  Turn turn() const {
    Turn done;
    if (options_.settings.precision != Precision::fp64) {
      go_on_in<float>(done);
      if (options_.settings.precision == Precision::fp32 || !wants_fp64(done.info.reason))
        return done;
    }
    go_on_in<double>(done);
    return done;
  }

  static bool wants_fp64(Reason reason) {
    return reason == Reason::stagnated || reason == Reason::indefinite;
  }

  template <class Value>
  void go_on_in(Turn& done) const {
    MPI_Barrier(comm_);
    const double start = MPI_Wtime();
    std::optional<Unbound> setting_up(std::in_place);
    const Plan plan = plan_of(problem_, options_.settings, threads_);
    if (plan.coarse) {
      LevelOwners owners(rank_, ranks_, [this](const Ordering& order) { return owners_of(order); });
      Hierarchy<Value> hierarchy = hierarchy_of<Value>(
          problem_, plan, threads_, [&owners](const Ordering& order, const Transfer* from) {
            return owners.hold(order, from);
          });
      const Share share = shared_out(hierarchy.ordering, owners.of(0));
      RankSolver solver(share, threads_, comm_);
      RankMultigrid<Value> multigrid(hierarchy, share, owners, threads_, comm_);
      setting_up.reset();
      solve<Value>(share, solver, multigrid.method(), start, done);
      done.set_up = multigrid.summary();
      return;
    }
    const Ordered whole = ordered(problem_, plan, options_.settings, kLanes<Value>, threads_);
    const Share share = shared_out(whole.ordering, owners_of(whole.ordering));
    RankSolver solver(share, threads_, comm_);
    RankCholesky<Value> cholesky(share,
                                 dropping_of(options_.settings, plan.dominance, plan.evenness),
                                 plan.evenness, solver.executor(), comm_);
    setting_up.reset();
    solve<Value>(share, solver, cholesky.method(), start, done);
    done.set_up = cholesky.summary(whole.blocks, whole.ordering);
  }

  // Its set-up began at `start`.
  template <class Value, class Method>
  void solve(const Share& share, RankSolver& solver, Method& method, double start,
             Turn& done) const {
    done.setup += slowest(MPI_Wtime() - start);
    std::vector<double> b(share.row.size()), x(share.row.size());
    for (std::size_t row = 0; row < b.size(); row++) {
      b[row] = rhs_at(share.row[row], problem_.ones, options_.seed);
      if (!done.so_far.empty()) x[row] = done.so_far[static_cast<std::size_t>(share.row[row])];
    }
    solver.solve<Value>(method, b, x, goal(), done.info);
    done.info.seconds = slowest(done.info.seconds);
    done.total += slowest(MPI_Wtime() - start);
    done.residual = residual_of(share, b, x, comm_);
    done.x = hash_of(share, scaled(x, problem_.exponent), comm_);
    if (wants_fp64(done.info.reason)) done.so_far = whole_of(share, x, problem_.rows(), comm_);
  }

  Goal goal() const {
    Goal goal = options_.goal;
    goal.max_iterations = max_iterations(goal, problem_.rows());
    return goal;
  }

  Owners owners_of(const Ordering& order) const {
    if (problem_.grid || ranks_ == 1) return split_in_order(order, ranks_);
    const RowsOf<std::int32_t> rows{problem_.matrix.view()};
    const std::optional<Owners> owners = split_by_metis(order, rows, ranks_);
    return owners ? *owners : split_in_order(order, ranks_);
  }

  Share shared_out(const Ordering& order, const Owners& owners) const {
    if (problem_.grid)
      return share_of(order, owners, rank_, RowsOfPoisson{*problem_.grid}, threads_);
    return share_of(order, owners, rank_, RowsOf<std::int32_t>{problem_.matrix.view()}, threads_);
  }

  void check() const {
    const Turn& last = turns_.back();
    if (last.info.reason != Reason::converged)
      throw MatrixError("it did not converge: after " + std::to_string(last.info.iterations) +
                        " iterations the residual is " + std::to_string(last.residual));
    if (!(last.residual <= options_.goal.rtol * 1.0001))
      throw MatrixError("x is wrong: its residual is " + std::to_string(last.residual));
    if (last.x != turns_.front().x)
      throw MatrixError("x is not the same in two repetitions: " + last.x + " and " +
                        turns_.front().x);
  }

  // On how many cpus the threads of all ranks of this node are.
  int count_cpus() const {
    std::vector<std::uint8_t> mine(kMaxCpus), all(kMaxCpus);
#pragma omp parallel num_threads(threads_)
    {
      const int cpu = sched_getcpu();
#pragma omp critical
      mine[static_cast<std::size_t>(cpu) % kMaxCpus] = 1;
    }
    MPI_Reduce(mine.data(), all.data(), kMaxCpus, MPI_UINT8_T, MPI_MAX, 0, comm_);
    return static_cast<int>(std::count(all.begin(), all.end(), 1));
  }

  void print(int cpus) const {
    const Turn& last = turns_.back();
    const char* precision = last.info.precision == Precision::fp32 ? "fp32" : "fp64";
    std::printf(
        "{\"problem\": \"%s\", \"rows\": %lld, \"ranks\": %d, \"threads\": %d,\n"
        "\"blocks\": \"%s\", \"block_rows\": %d, \"colours\": %d, \"levels\": %d,\n"
        "\"relax\": %g, \"shift\": %g,\n"
        "\"precision\": \"%s\", \"iterations\": %lld, \"residual\": %.17g, \"x\": \"%s\",\n"
        "\"bytes_per_iteration\": %lld, \"seconds_per_iteration\": %.9g, \"ceiling_share\": %.4g,\n"
        "\"readings\": [",
        problem_.name.c_str(), static_cast<long long>(problem_.rows()), ranks_, threads_,
        last.set_up.blocks.c_str(), last.set_up.block_rows, last.set_up.colours, last.set_up.levels,
        last.set_up.relax, last.set_up.shift, precision,
        static_cast<long long>(last.info.iterations), last.residual, last.x.c_str(),
        static_cast<long long>(last.set_up.bytes_per_iteration), of_iteration(last),
        ceiling_share());
    print_readings(notes(cpus));
    std::printf("\n]}\n");
  }

  static double of_iteration(const Turn& turn) {
    return turn.info.seconds / static_cast<double>(std::max<std::int64_t>(1, turn.info.iterations));
  }
  static double bandwidth(const Turn& turn) {
    return static_cast<double>(turn.set_up.bytes_per_iteration) / of_iteration(turn);
  }

  // Of the median iteration; 0 where the triad was not measured.
  double ceiling_share() const {
    if (triad_.empty()) return 0;
    std::vector<double> found;
    found.reserve(turns_.size());
    for (const Turn& turn : turns_) found.push_back(bandwidth(turn));
    std::nth_element(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(found.size() / 2),
                     found.end());
    return found[found.size() / 2] / *std::max_element(triad_.begin(), triad_.end());
  }

  std::string notes(int cpus) const {
    const Turn& last = turns_.back();
    char text[500];
    std::snprintf(text, sizeof text,
                  "\"x\": \"%s\", \"iterations\": \"%lld\", \"residual\": \"%.2e\", "
                  "\"blocks\": \"%s\", \"colours\": \"%d\", \"levels\": \"%d\", "
                  "\"precision\": \"%s\", \"cpus\": \"%d\", "
                  "\"bytes_per_iteration\": \"%lld\", \"flops_per_iteration\": \"%lld\"",
                  last.x.c_str(), static_cast<long long>(last.info.iterations), last.residual,
                  last.set_up.blocks.c_str(), last.set_up.colours, last.set_up.levels,
                  last.info.precision == Precision::fp32 ? "fp32" : "fp64", cpus,
                  static_cast<long long>(last.set_up.bytes_per_iteration),
                  static_cast<long long>(last.set_up.flops_per_iteration));
    return text;
  }

  void print_readings(const std::string& notes) const {
    const auto of_turns = [this](double (*value)(const Turn&)) {
      std::vector<double> values;
      values.reserve(turns_.size());
      for (const Turn& turn : turns_) values.push_back(value(turn));
      return values;
    };
    const auto reading = [&notes](const char* before, const char* metric, const char* unit,
                                  const std::vector<double>& values) {
      std::printf("%s\n{\"metric\": \"%s\", \"unit\": \"%s\", \"notes\": {%s}, \"values\": [",
                  before, metric, unit, notes.c_str());
      for (std::size_t i = 0; i < values.size(); i++)
        std::printf("%s%.9g", i ? ", " : "", values[i]);
      std::printf("]}");
    };
    reading("", "total", "second", of_turns([](const Turn& turn) { return turn.total; }));
    reading(",", "setup", "second", of_turns([](const Turn& turn) { return turn.setup; }));
    reading(",", "iteration", "second", of_turns(of_iteration));
    reading(",", "bandwidth", "byte/s", of_turns(bandwidth));
    if (!triad_.empty()) reading(",", "triad", "byte/s", triad_);
  }

  const Options& options_;
  MPI_Comm comm_;
  int threads_, rank_ = 0, ranks_ = 1;
  Problem problem_;
  std::vector<Turn> turns_;
  std::vector<double> triad_;
};

// What all ranks throw alike is said once.
int run(int count, char** words) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::string complaint;
  try {
    const Options options = options_in(count, words);
    Session(options, MPI_COMM_WORLD).run();
    return 0;
  } catch (const UsageError& error) {
    complaint = error.what();
  } catch (const MatrixError& error) {
    complaint = error.what();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "solve_mpi: rank %d: %s\n", rank, error.what());
    MPI_Abort(MPI_COMM_WORLD, kFailed);
  }
  if (rank == 0) std::fprintf(stderr, "solve_mpi: %s\n", complaint.c_str());
  return kFailed;
}

}  // namespace
}  // namespace flowos::solve

int main(int count, char** words) {
  int level = 0;
  MPI_Init_thread(&count, &words, MPI_THREAD_FUNNELED, &level);
  const int status = flowos::solve::run(count, words);
  MPI_Finalize();
  return status;
}
// NOLINTEND(bugprone-casting-through-void)
