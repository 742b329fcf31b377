// solve_mpi.cpp, which solves many problems in one start of an MPI where it is given a list of
// them:
//
//   solve --list FILE      a line each: how many of the ranks, threads, the program's own words
//
// Rank 0 prints what the program prints of each, and a record separator. Without a list it is the
// program itself. Most of the time of a small problem is its start, and the search of ranks for
// messages of others that wait for a core: here such ranks let others run.

#define main main_of_solve_mpi
#include "mpi/solve_mpi.cpp"
#undef main

#include <omp.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <sstream>

namespace flowos::solve {
namespace {

bool lets_others_run = false;

void let_others_run(int done) {
  if (!done) usleep(10);
}

// Ranks that a problem is not for wait for those that solve it, and look for them seldom.
void wait_for_all() {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  for (int done = 0; !done; usleep(500)) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
}

void solve_with(std::vector<std::string> words, MPI_Comm comm) {
  std::vector<char*> given;
  for (std::string& word : words) given.push_back(word.data());
  try {
    const Options options = options_in(static_cast<int>(given.size()), given.data());
    Session(options, comm).run();
  } catch (const std::exception& error) {
    std::cout << "{\"failed\": " << std::quoted(error.what()) << "}";
  }
}

void solve_line(const std::string& line, int rank) {
  std::istringstream words(line);
  int ranks = 0, threads = 0;
  words >> ranks >> threads;
  std::vector<std::string> own = {"solve_mpi"};
  for (std::string word; words >> std::quoted(word);) own.push_back(word);
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank < ranks ? 0 : MPI_UNDEFINED, rank, &comm);
  if (comm != MPI_COMM_NULL) {
    omp_set_num_threads(threads);
    solve_with(own, comm);
    MPI_Comm_free(&comm);
  }
  if (rank == 0) std::cout << '\x1e' << std::flush;
  wait_for_all();
}

int solve_list(const char* path) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  lets_others_run = true;
  std::ifstream list(path);
  for (std::string line; std::getline(list, line);) solve_line(line, rank);
  return 0;
}

}  // namespace
}  // namespace flowos::solve

// By MPI's own interface for what stands in between.
extern "C" int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[]) {
  if (!flowos::solve::lets_others_run) return PMPI_Waitall(count, requests, statuses);
  int done = 0, error = MPI_SUCCESS;
  for (; !done && error == MPI_SUCCESS; flowos::solve::let_others_run(done))
    error = PMPI_Testall(count, requests, &done, statuses);
  return error;
}

extern "C" int MPI_Allreduce(const void* from, void* to, int count, MPI_Datatype type, MPI_Op op,
                             MPI_Comm comm) {
  if (!flowos::solve::lets_others_run) return PMPI_Allreduce(from, to, count, type, op, comm);
  MPI_Request request = MPI_REQUEST_NULL;
  const int error = PMPI_Iallreduce(from, to, count, type, op, comm, &request);
  return error == MPI_SUCCESS ? MPI_Waitall(1, &request, MPI_STATUSES_IGNORE) : error;
}

int main(int count, char** words) {
  if (count != 3 || std::strcmp(words[1], "--list") != 0) return main_of_solve_mpi(count, words);
  int level = 0;
  MPI_Init_thread(&count, &words, MPI_THREAD_FUNNELED, &level);
  const int status = flowos::solve::solve_list(words[2]);
  MPI_Finalize();
  return status;
}
