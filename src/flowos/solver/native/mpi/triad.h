#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace flowos::solve {

// The memory bandwidth that these ranks and threads reach together, in byte/s: STREAM's triad
// (McCalpin), where the line that a store reads first is counted, as the bytes of an iteration are.
class Triad {
 public:
  // elements: of each of three arrays, over all ranks.
  Triad(std::int64_t elements, int threads, MPI_Comm comm) : threads_(threads), comm_(comm) {
    int ranks = 1;
    MPI_Comm_size(comm, &ranks);
    count_ = elements / ranks;
    for (auto *array : {&a_, &b_, &c_})
      array->reset(new double[static_cast<std::size_t>(
          count_)]);  // touched first by the thread that uses it
    double *a = a_.get(), *b = b_.get(), *c = c_.get();
#pragma omp parallel for num_threads(threads_) schedule(static)
    for (std::int64_t i = 0; i < count_; i++) {
      a[i] = 0;
      b[i] = 1;
      c[i] = 2;
    }
  }

  // Each pass by itself.
  std::vector<double> rates(int passes) {
    std::vector<double> found;
    pass();  // to warm up
    for (int i = 0; i < passes; i++) {
      MPI_Barrier(comm_);
      const double start = MPI_Wtime();
      pass();
      double mine[] = {MPI_Wtime() - start, static_cast<double>(count_)}, slowest = 0, all = 0;
      MPI_Allreduce(mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, comm_);
      MPI_Allreduce(mine + 1, &all, 1, MPI_DOUBLE, MPI_SUM, comm_);
      found.push_back(kBytes * all / slowest);
    }
    return found;
  }

 private:
  static constexpr double kBytes = 32;  // two are read, one is read and written

  void pass() {
    double *a = a_.get(), *b = b_.get(), *c = c_.get();
#pragma omp parallel for num_threads(threads_) schedule(static)
    for (std::int64_t i = 0; i < count_; i++) a[i] = b[i] + 3.0 * c[i];
  }

  int threads_;
  MPI_Comm comm_;
  std::int64_t count_ = 0;
  std::unique_ptr<double[]> a_, b_, c_;
};

}  // namespace flowos::solve
