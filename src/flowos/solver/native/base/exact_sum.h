#pragma once

#include <array>
#include <bit>
#include <cstddef>
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

  void add(double term) {
    const auto bits = std::bit_cast<std::uint64_t>(term);
    const int exponent = static_cast<int>(bits >> 52 & 0x7ff);
    std::uint64_t mantissa = bits & ((std::uint64_t{1} << 52) - 1);
    if (exponent == 0x7ff) return add_no_number(mantissa != 0, term < 0);
    if (exponent > 0) mantissa |= std::uint64_t{1} << 52;
    const int lowest = exponent > 0 ? exponent - 1 : 0;
    const auto at = static_cast<std::size_t>(lowest / 32);
    const int offset = lowest % 32;
    const std::uint64_t upper = mantissa >> (32 - offset);
    const std::int64_t sign = std::bit_cast<std::int64_t>(bits) < 0 ? -1 : 1;
    limbs_[at] += sign * static_cast<std::int64_t>(mantissa << offset & 0xffffffff);
    limbs_[at + 1] += sign * static_cast<std::int64_t>(upper & 0xffffffff);
    limbs_[at + 2] += sign * static_cast<std::int64_t>(upper >> 32);
  }
  void add(const ExactSum& other);
  // The double nearest to it, ties to even. Infinite or not a number where its terms make it so.
  double value() const;

  // What an MPI_Allreduce with MPI_SUM of int64 adds up.
  const std::array<std::int64_t, kLimbs>& limbs() const { return limbs_; }
  std::array<std::int64_t, kLimbs>& limbs() { return limbs_; }

 private:
  void add_no_number(bool nan, bool negative);

  std::array<std::int64_t, kLimbs> limbs_{};
};

template <std::size_t count>
using ExactSums = std::array<ExactSum, count>;

}  // namespace flowos::solve
