#pragma once

#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "../exact_sum.h"

namespace flowos::solve {

// Sums over all groups of all ranks, without rounding until they are read: the same whatever thread
// and rank a group is computed by. One reduction for all of them.
template <int count>
class Sums {
 public:
  Sums(int threads, MPI_Comm comm) : parts_(static_cast<std::size_t>(threads)), comm_(comm) {}

  void add(int thread, int number, double term) {
    parts_[static_cast<std::size_t>(thread)].sums[static_cast<std::size_t>(number)].add(term);
  }

  // The sums so far; they begin anew.
  std::array<double, count> taken() {
    std::array<std::array<std::int64_t, ExactSum::kLimbs>, count> mine, all;
    std::array<double, count> values;
    for (std::size_t i = 0; i < count; i++) {
      for (std::size_t part = 1; part < parts_.size(); part++)
        parts_[0].sums[i].add(parts_[part].sums[i]);
      mine[i] = parts_[0].sums[i].limbs();
    }
    MPI_Allreduce(mine.data(), all.data(), count * ExactSum::kLimbs, MPI_INT64_T, MPI_SUM, comm_);
    for (std::size_t i = 0; i < count; i++) {
      ExactSum sum;
      sum.limbs() = all[i];
      values[i] = sum.value();
    }
    parts_.assign(parts_.size(), {});
    return values;
  }

 private:
  struct alignas(64) Part {  // no two threads share a line
    std::array<ExactSum, count> sums;
  };

  std::vector<Part> parts_;
  MPI_Comm comm_;
};

}  // namespace flowos::solve
