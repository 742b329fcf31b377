// Eigen's conjugate gradients with its incomplete Cholesky factors.
// OPTION: natural | amd, the order of the rows.
#include <Eigen/IterativeLinearSolvers>
#include <Eigen/SparseCore>

#include "contest.h"

namespace {

using Matrix = Eigen::SparseMatrix<double, Eigen::RowMajor>;
using Vector = Eigen::Map<const Eigen::VectorXd>;

template <class Order>
contest::Result solve(const contest::Rows& all, const std::vector<double>& b, double rtol,
                      Eigen::VectorXd& x) {
  using Factors = Eigen::IncompleteCholesky<double, Eigen::Lower, Order>;
  const Eigen::Map<const Matrix> matrix(all.count(), all.count(),
                                        static_cast<Eigen::Index>(all.values.size()),
                                        all.starts.data(), all.columns.data(), all.values.data());
  Eigen::ConjugateGradient<Matrix, Eigen::Lower | Eigen::Upper, Factors> solver;
  solver.setTolerance(rtol);
  const double began = contest::seconds();
  solver.compute(matrix);
  const double ready = contest::seconds();
  x = solver.solve(Vector(b.data(), all.count()));
  return {.setup_seconds = ready - began,
          .solve_seconds = contest::seconds() - ready,
          .iterations = solver.iterations(),
          .memory_bytes = contest::memory_bytes()};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) contest::fail("usage: MATRIX B X RTOL natural|amd");
  const contest::Rows all = contest::read_rows(argv[1], 0, 1);
  const std::vector<double> b = contest::read_vector(argv[2], all);
  const double rtol = std::atof(argv[4]);
  Eigen::VectorXd x;
  const bool natural = std::string(argv[5]) == "natural";
  contest::print_result(natural ? solve<Eigen::NaturalOrdering<int>>(all, b, rtol, x)
                                : solve<Eigen::AMDOrdering<int>>(all, b, rtol, x));
  contest::write_vector(argv[3], all, x.data());
}
