#pragma once

#include <array>
#include <cstdint>

namespace flowos::solve {

// A sum of doubles without any rounding until it is read, so that it is the same in whatever order,
// by whichever threads and on whichever ranks its terms come (a long accumulator: Kulisch and
// Miranker, SIAM Review 28, 1986). Terms are sums of whole groups, so that what it costs does not
// show.
class ExactSum {
 public:
  // Of 32 bits each, the lowest first, in int64: fewer than 2^31 terms, over all ranks, before any
  // could overflow. The last three count the infinities and what is not a number.
  static constexpr int kLimbs = 70;

  void add(double term);
  void add(const ExactSum& other);
  // The double nearest to it, ties to even. Infinite or not a number where its terms make it so.
  double value() const;

  // What an MPI_Allreduce with MPI_SUM of int64 adds up.
  const std::array<std::int64_t, kLimbs>& limbs() const { return limbs_; }
  std::array<std::int64_t, kLimbs>& limbs() { return limbs_; }

 private:
  std::array<std::int64_t, kLimbs> limbs_{};
};

}  // namespace flowos::solve
