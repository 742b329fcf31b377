// AMGCL: conjugate gradients in double, preconditioned by a hierarchy or by ILU(0), in float or
// double. OPTIONS: float|double  sa|ruge-stuben|ilu0
#include <amgcl/adapter/crs_tuple.hpp>
#include <amgcl/amg.hpp>
#include <amgcl/backend/builtin.hpp>
#include <amgcl/coarsening/ruge_stuben.hpp>
#include <amgcl/coarsening/smoothed_aggregation.hpp>
#include <amgcl/make_solver.hpp>
#include <amgcl/relaxation/as_preconditioner.hpp>
#include <amgcl/relaxation/ilu0.hpp>
#include <amgcl/relaxation/spai0.hpp>
#include <amgcl/solver/cg.hpp>

#include "contest.h"

namespace {

struct Problem {
  const contest::Rows& all;
  const std::vector<double>& b;
  double rtol;
  std::vector<double>& x;
};

template <class Before>
contest::Result solve(const Problem& problem) {
  using Solver = amgcl::make_solver<Before, amgcl::solver::cg<amgcl::backend::builtin<double>>>;
  typename Solver::params wanted;
  wanted.solver.tol = problem.rtol;
  wanted.solver.maxiter = 10000;
  const contest::Rows& all = problem.all;
  const auto rows = static_cast<std::ptrdiff_t>(all.count());
  const auto matrix = std::tie(rows, all.starts, all.columns, all.values);
  const double began = contest::seconds();
  const Solver solver(matrix, wanted);
  const double ready = contest::seconds();
  const auto [iterations, error] = solver(matrix, problem.b, problem.x);
  return {.setup_seconds = ready - began,
          .solve_seconds = contest::seconds() - ready,
          .iterations = static_cast<std::int64_t>(iterations),
          .memory_bytes = contest::memory_bytes()};
}

template <class Value>
contest::Result solve(const Problem& problem, const std::string& before) {
  using Backend = amgcl::backend::builtin<Value>;
  if (before == "sa")
    return solve<
        amgcl::amg<Backend, amgcl::coarsening::smoothed_aggregation, amgcl::relaxation::spai0>>(
        problem);
  if (before == "ruge-stuben")
    return solve<amgcl::amg<Backend, amgcl::coarsening::ruge_stuben, amgcl::relaxation::spai0>>(
        problem);
  return solve<amgcl::relaxation::as_preconditioner<Backend, amgcl::relaxation::ilu0>>(problem);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 7) contest::fail("usage: MATRIX B X RTOL float|double sa|ruge-stuben|ilu0");
  const contest::Rows all = contest::read_rows(argv[1], 0, 1);
  const std::vector<double> b = contest::read_vector(argv[2], all);
  std::vector<double> x(b.size());
  const Problem problem{.all = all, .b = b, .rtol = std::atof(argv[4]), .x = x};
  const bool narrow = std::string(argv[5]) == "float";
  contest::print_result(narrow ? solve<float>(problem, argv[6]) : solve<double>(problem, argv[6]));
  contest::write_vector(argv[3], all, x.data());
}
