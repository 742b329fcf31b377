// hypre's conjugate gradients with BoomerAMG. hypre's own matrix is created before the clock
// starts. OPTIONS: THRESHOLD of strong connections, LEVELS of aggressive coarsening.
#include <HYPRE.h>
#include <HYPRE_IJ_mv.h>
#include <HYPRE_parcsr_ls.h>
#include <mpi.h>

#include <numeric>

#include "contest.h"

namespace {

struct Share {
  contest::Rows own;
  std::vector<HYPRE_BigInt> rows;  // the numbers of its own
};

HYPRE_IJMatrix matrix_of(const Share& share) {
  const HYPRE_BigInt first = share.rows.front(), last = share.rows.back();
  HYPRE_IJMatrix matrix = nullptr;
  HYPRE_IJMatrixCreate(MPI_COMM_WORLD, first, last, first, last, &matrix);
  HYPRE_IJMatrixSetObjectType(matrix, HYPRE_PARCSR);
  const contest::Rows& own = share.own;
  std::vector<HYPRE_Int> counts(share.rows.size());
  for (std::size_t row = 0; row < counts.size(); ++row)
    counts[row] = own.starts[row + 1] - own.starts[row];
  HYPRE_IJMatrixSetRowSizes(matrix, counts.data());
  HYPRE_IJMatrixInitialize(matrix);
  const std::vector<HYPRE_BigInt> columns(own.columns.begin(), own.columns.end());
  HYPRE_IJMatrixSetValues(matrix, own.count(), counts.data(), share.rows.data(), columns.data(),
                          own.values.data());
  HYPRE_IJMatrixAssemble(matrix);
  return matrix;
}

HYPRE_IJVector vector_of(const Share& share, const std::vector<double>& values) {
  HYPRE_IJVector vector = nullptr;
  HYPRE_IJVectorCreate(MPI_COMM_WORLD, share.rows.front(), share.rows.back(), &vector);
  HYPRE_IJVectorSetObjectType(vector, HYPRE_PARCSR);
  HYPRE_IJVectorInitialize(vector);
  HYPRE_IJVectorSetValues(vector, share.own.count(), share.rows.data(), values.data());
  HYPRE_IJVectorAssemble(vector);
  return vector;
}

template <class Object>
Object parallel(HYPRE_IJMatrix matrix) {
  void* object = nullptr;
  HYPRE_IJMatrixGetObject(matrix, &object);
  return static_cast<Object>(object);
}

template <class Object>
Object parallel(HYPRE_IJVector vector) {
  void* object = nullptr;
  HYPRE_IJVectorGetObject(vector, &object);
  return static_cast<Object>(object);
}

HYPRE_Solver multigrid(double threshold, int aggressive_levels) {
  HYPRE_Solver solver = nullptr;
  HYPRE_BoomerAMGCreate(&solver);
  HYPRE_BoomerAMGSetPrintLevel(solver, 0);
  HYPRE_BoomerAMGSetMaxIter(solver, 1);
  HYPRE_BoomerAMGSetTol(solver, 0);
  HYPRE_BoomerAMGSetStrongThreshold(solver, threshold);
  HYPRE_BoomerAMGSetAggNumLevels(solver, aggressive_levels);
  return solver;
}

HYPRE_Solver gradients(double rtol, HYPRE_Solver before) {
  HYPRE_Solver solver = nullptr;
  HYPRE_ParCSRPCGCreate(MPI_COMM_WORLD, &solver);
  HYPRE_ParCSRPCGSetMaxIter(solver, 10000);
  HYPRE_ParCSRPCGSetTol(solver, rtol);
  HYPRE_ParCSRPCGSetTwoNorm(solver, 1);
  HYPRE_ParCSRPCGSetPrecond(solver, HYPRE_BoomerAMGSolve, HYPRE_BoomerAMGSetup, before);
  return solver;
}

double now() {
  MPI_Barrier(MPI_COMM_WORLD);
  return contest::seconds();
}

contest::Result solve(HYPRE_Solver solver, HYPRE_IJMatrix a, HYPRE_IJVector b, HYPRE_IJVector x) {
  auto* matrix = parallel<HYPRE_ParCSRMatrix>(a);
  auto* right = parallel<HYPRE_ParVector>(b);
  auto* left = parallel<HYPRE_ParVector>(x);
  contest::Result result;
  const double began = now();
  HYPRE_ParCSRPCGSetup(solver, matrix, right, left);
  const double ready = now();
  HYPRE_ParCSRPCGSolve(solver, matrix, right, left);
  result.setup_seconds = ready - began;
  result.solve_seconds = now() - ready;
  HYPRE_Int iterations = 0;
  HYPRE_ParCSRPCGGetNumIterations(solver, &iterations);
  result.iterations = iterations;
  const double memory = contest::memory_bytes();
  MPI_Reduce(&memory, &result.memory_bytes, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  return result;
}

Share share_of(const char* path) {
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  Share share{.own = contest::read_rows(path, rank, ranks), .rows = {}};
  share.rows.resize(static_cast<std::size_t>(share.own.count()));
  std::iota(share.rows.begin(), share.rows.end(), static_cast<HYPRE_BigInt>(share.own.first));
  return share;
}

void run(char** argv) {
  const Share share = share_of(argv[1]);
  std::vector<double> values = contest::read_vector(argv[2], share.own);
  HYPRE_IJMatrix a = matrix_of(share);
  HYPRE_IJVector b = vector_of(share, values);
  HYPRE_IJVector x = vector_of(share, std::vector<double>(values.size()));
  HYPRE_Solver before = multigrid(std::atof(argv[5]), std::atoi(argv[6]));
  HYPRE_Solver solver = gradients(std::atof(argv[4]), before);
  const contest::Result result = solve(solver, a, b, x);
  HYPRE_IJVectorGetValues(x, share.own.count(), share.rows.data(), values.data());
  contest::write_vector(argv[3], share.own, values.data());
  if (share.own.first == 0) contest::print_result(result);
  HYPRE_ParCSRPCGDestroy(solver);
  HYPRE_BoomerAMGDestroy(before);
  HYPRE_IJVectorDestroy(x);
  HYPRE_IJVectorDestroy(b);
  HYPRE_IJMatrixDestroy(a);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 7) contest::fail("usage: MATRIX B X RTOL THRESHOLD AGGRESSIVE-LEVELS");
  MPI_Init(&argc, &argv);
  HYPRE_Init();
  run(argv);
  HYPRE_Finalize();
  MPI_Finalize();
}
