#pragma once

#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/exact_sum.h"

namespace flowos::solve {

// The sums over all ranks, by one reduction.
template <std::size_t count>
std::array<double, count> over_ranks(const ExactSums<count>& mine, MPI_Comm comm) {
  constexpr int kLimbs = ExactSum::kLimbs;
  std::array<std::array<std::int64_t, kLimbs>, count> limbs;
  for (std::size_t i = 0; i < count; i++) limbs[i] = mine[i].limbs();
  MPI_Allreduce(MPI_IN_PLACE, limbs.data(), static_cast<int>(count) * kLimbs, MPI_INT64_T, MPI_SUM,
                comm);
  std::array<double, count> values;
  for (std::size_t i = 0; i < count; i++) {
    ExactSum sum;
    sum.limbs() = limbs[i];
    values[i] = sum.value();
  }
  return values;
}

}  // namespace flowos::solve
