#pragma once

#include <mpi.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "mpi/share.h"

namespace flowos::solve {

// The finalizer of SplitMix64 (Steele, Lea, Flood: OOPSLA 2014).
inline std::uint64_t mixed(std::uint64_t bits) {
  bits += 0x9e3779b97f4a7c15U;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9U;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebU;
  return bits ^ (bits >> 31);
}

// The right-hand side at a row of the whole: ones, or uniform in [-1, 1).
inline double rhs_at(std::int64_t row, bool ones, std::uint64_t seed) {
  if (ones) return 1;
  const std::uint64_t bits = mixed(mixed(seed) ^ static_cast<std::uint64_t>(row));
  return static_cast<double>(bits >> 11) * 0x1p-52 - 1;
}

// Sixteen digits that any other bit of x makes others: mixed(mixed(row) ^ bits of x) summed over
// all rows, which is the same however they are shared out.
inline std::string hash_of(const Share& share, std::span<const double> x, MPI_Comm comm) {
  std::uint64_t mine = 0, all = 0;
  share.each_own_row([&](std::size_t row) {
    mine += mixed(mixed(static_cast<std::uint64_t>(share.row[row])) ^
                  std::bit_cast<std::uint64_t>(x[row]));
  });
  MPI_Allreduce(&mine, &all, 1, MPI_UINT64_T, MPI_SUM, comm);
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(all));
  return text;
}

// x by row of the whole, on all ranks.
inline std::vector<double> whole_of(const Share& share, std::span<const double> x,
                                    std::int64_t rows, MPI_Comm comm) {
  std::vector<double> whole(static_cast<std::size_t>(rows));
  share.each_own_row(
      [&](std::size_t row) { whole[static_cast<std::size_t>(share.row[row])] = x[row]; });
  MPI_Allreduce(MPI_IN_PLACE, whole.data(), static_cast<int>(rows), MPI_UINT64_T, MPI_BOR, comm);
  return whole;
}

// ||b - A x|| / ||b||, computed from the entries as they came and without the solver. x holds the
// values of other ranks too.
inline double residual_of(const Share& share, std::span<const double> b, std::span<const double> x,
                          MPI_Comm comm) {
  double mine[] = {0, 0}, all[] = {0, 0};
  share.each_own_row([&](std::size_t row) {
    double rest = b[row];
    const auto end = static_cast<std::size_t>(share.matrix.starts[row + 1]);
    for (auto at = static_cast<std::size_t>(share.matrix.starts[row]); at < end; at++)
      rest -= share.matrix.values[at] * x[static_cast<std::size_t>(share.matrix.columns[at])];
    mine[0] += rest * rest;
    mine[1] += b[row] * b[row];
  });
  MPI_Allreduce(mine, all, 2, MPI_DOUBLE, MPI_SUM, comm);
  return std::sqrt(all[0] / all[1]);
}

}  // namespace flowos::solve
