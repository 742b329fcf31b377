#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "matrix/check.h"
#include "matrix/error.h"
#include "matrix/generate.h"
#include "matrix/grid.h"
#include "matrix/matrix.h"
#include "matrix/matrix_market.h"
#include "matrix/scaling.h"
#include "mpi/answer.h"
#include "mpi/options.h"

namespace flowos::solve {

// What is to be solved, as every rank has it before it is shared out.
struct Problem {
  std::string name;
  std::optional<Grid> grid;       // of Poisson's equation, whose rows are not stored
  OwnedCsr<std::int32_t> matrix;  // else the whole
  int exponent = 0;               // it is 2^exponent times as large as it came
  bool ones = false;              // the right-hand side

  std::int64_t rows() const {
    return grid ? grid->cells[0] * grid->cells[1] * grid->cells[2] : matrix.view().rows;
  }
};

// G3_circuit of the SuiteSparse Matrix Collection.
inline constexpr std::int64_t kCircuitRows = 1'585'478, kCircuitEntries = 7'660'826;

// What goes by its name must be as large. MatrixError.
inline void refuse_impostor(const Problem& problem, const std::string& path) {
  if (problem.name != "G3_circuit") return;
  const auto rows = problem.matrix.view().rows;
  const auto entries = static_cast<std::int64_t>(problem.matrix.values.size());
  if (rows != kCircuitRows || entries != kCircuitEntries)
    throw MatrixError(path + " is not G3_circuit: it has " + std::to_string(rows) + " rows and " +
                      std::to_string(entries) + " entries, not " + std::to_string(kCircuitRows) +
                      " and " + std::to_string(kCircuitEntries));
}

// The name of a file without folders and ending, and without what JSON would have to escape.
inline std::string stem_of(const std::string& path) {
  const std::size_t start = path.rfind('/') + 1;  // npos + 1 is 0
  std::string stem = path.substr(start, path.rfind('.') - start);
  for (char& letter : stem)
    if (static_cast<unsigned char>(letter) < ' ' || letter == '"' || letter == '\\') letter = '_';
  return stem;
}

// MatrixError
inline Problem made_here(const Options& options, int threads) {
  Problem problem;
  if (options.problem == "g3like") {
    problem.name = "g3like";
    problem.matrix = g3like(options.seed, threads);
    return problem;
  }
  problem.name = stem_of(options.problem);
  problem.matrix = read_matrix_market(options.problem, threads);
  refuse_impostor(problem, options.problem);
  problem.exponent = scale_exponent(check(problem.matrix.view(), threads).evenness);
  if (problem.exponent != 0)
    problem.matrix.values = scaled(problem.matrix.values, problem.exponent);
  return problem;
}

template <class Value>
void broadcast(std::vector<Value>& values, MPI_Comm comm) {
  constexpr std::size_t most = std::size_t{1} << 27;  // MPI counts with int
  auto size = static_cast<std::int64_t>(values.size());
  MPI_Bcast(&size, 1, MPI_INT64_T, 0, comm);
  values.resize(static_cast<std::size_t>(size));
  for (std::size_t at = 0; at < values.size(); at += most)
    MPI_Bcast(values.data() + at,
              static_cast<int>(std::min(most, values.size() - at) * sizeof(Value)), MPI_BYTE, 0,
              comm);
}

inline void broadcast(std::string& text, MPI_Comm comm) {
  std::vector<char> letters(text.begin(), text.end());
  broadcast(letters, comm);
  text.assign(letters.begin(), letters.end());
}

// Rank 0 reads or generates what is not computed; where it cannot, all ranks throw the same.
// MatrixError, UsageError.
inline Problem problem_of(const Options& options, int threads, MPI_Comm comm) {
  Problem problem;
  if (options.problem.starts_with("poisson:")) {
    problem.name = "poisson";
    problem.grid = grid_in(options.problem);
    problem.ones = true;
    return problem;
  }
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  std::string complaint;
  if (rank == 0) {
    try {
      problem = made_here(options, threads);
    } catch (const MatrixError& error) {
      complaint = error.what();
    }
  }
  broadcast(complaint, comm);
  if (!complaint.empty()) throw MatrixError(complaint);
  broadcast(problem.name, comm);
  broadcast(problem.matrix.starts, comm);
  broadcast(problem.matrix.columns, comm);
  broadcast(problem.matrix.values, comm);
  MPI_Bcast(&problem.exponent, 1, MPI_INT, 0, comm);
  return problem;
}

}  // namespace flowos::solve
