// PETSc's conjugate gradients; preconditioner and all else by PETSc's own options.
// PETSc's own matrix is created before the clock starts.
#include <petscksp.h>

#include "contest.h"

namespace {

Mat matrix_of(contest::Rows& own, int ranks) {
  Mat matrix = nullptr;
  const auto all = static_cast<PetscInt>(own.rows);
  if (ranks == 1)
    MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, all, all, own.starts.data(), own.columns.data(),
                              own.values.data(), &matrix);
  else
    MatCreateMPIAIJWithArrays(PETSC_COMM_WORLD, own.count(), own.count(), all, all,
                              own.starts.data(), own.columns.data(), own.values.data(), &matrix);
  MatSetOption(matrix, MAT_SPD, PETSC_TRUE);
  return matrix;
}

KSP solver_of(Mat matrix, double rtol) {
  KSP solver = nullptr;
  KSPCreate(PETSC_COMM_WORLD, &solver);
  KSPSetOperators(solver, matrix, matrix);
  KSPSetType(solver, KSPCG);
  KSPSetNormType(solver, KSP_NORM_UNPRECONDITIONED);
  KSPSetTolerances(solver, rtol, PETSC_DEFAULT, PETSC_DEFAULT, 10000);
  KSPSetFromOptions(solver);
  return solver;
}

double now() {
  MPI_Barrier(PETSC_COMM_WORLD);
  return contest::seconds();
}

contest::Result solve(KSP solver, Vec b, Vec x) {
  contest::Result result;
  const double began = now();
  KSPSetUp(solver);
  KSPSetUpOnBlocks(solver);
  const double ready = now();
  KSPSolve(solver, b, x);
  result.setup_seconds = ready - began;
  result.solve_seconds = now() - ready;
  PetscInt iterations = 0;
  KSPGetIterationNumber(solver, &iterations);
  result.iterations = iterations;
  const double memory = contest::memory_bytes();
  MPI_Reduce(&memory, &result.memory_bytes, 1, MPI_DOUBLE, MPI_SUM, 0, PETSC_COMM_WORLD);
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) contest::fail("usage: MATRIX B X RTOL [PETSC-OPTION...]");
  if (PetscInitialize(&argc, &argv, nullptr, nullptr) != 0) return 1;
  int rank = 0, ranks = 1;
  MPI_Comm_rank(PETSC_COMM_WORLD, &rank);
  MPI_Comm_size(PETSC_COMM_WORLD, &ranks);
  contest::Rows own = contest::read_rows(argv[1], rank, ranks);
  const std::vector<double> values = contest::read_vector(argv[2], own);
  Mat matrix = matrix_of(own, ranks);
  Vec b = nullptr, x = nullptr;
  VecCreateMPIWithArray(PETSC_COMM_WORLD, 1, own.count(), PETSC_DETERMINE, values.data(), &b);
  VecDuplicate(b, &x);
  KSP solver = solver_of(matrix, std::atof(argv[4]));
  const contest::Result result = solve(solver, b, x);
  const PetscScalar* found = nullptr;
  VecGetArrayRead(x, &found);
  contest::write_vector(argv[3], own, found);
  VecRestoreArrayRead(x, &found);
  if (rank == 0) contest::print_result(result);
  KSPDestroy(&solver);
  VecDestroy(&x);
  VecDestroy(&b);
  MatDestroy(&matrix);
  return PetscFinalize();
}
