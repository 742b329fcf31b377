#pragma once

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <span>
#include <vector>

#include "matrix/properties.h"

namespace flowos::solve {

// The e for which 2^e A has a diagonal around 1, so that squares of what is computed with it
// neither overflow nor vanish; 0 where A is near enough as it is. Even, as pivots have roots: x is
// the same bits, but for its exponent.
inline int scale_exponent(const Evenness& evenness) {
  constexpr int kNear = 32;
  const int middle = (std::ilogb(evenness.min_diagonal) + std::ilogb(evenness.max_diagonal)) / 2;
  return std::abs(middle) <= kNear ? 0 : -(middle / 2) * 2;
}

// The e for which the greatest of 2^e b is 1 or above, but below 2; 0 where its square is a number.
inline int side_exponent(double greatest) {
  constexpr double kMin = 1e-120, kMax = 1e120;
  return greatest == 0 || (greatest > kMin && greatest < kMax) ? 0 : -std::ilogb(greatest);
}

// The power of two that brings the greatest value to 1 or above, but below 2.
inline double unit_of(double greatest) {
  constexpr int kMax = 1000;
  return std::ldexp(1.0, -std::clamp(std::ilogb(greatest), -kMax, kMax));
}

// Times 2^exponent: exact but for what is too large or too small then.
inline std::vector<double> scaled(std::span<const double> values, int exponent) {
  std::vector<double> times(values.begin(), values.end());
  if (exponent == 0) return times;
  for (double& value : times) value = std::ldexp(value, exponent);
  return times;
}

}  // namespace flowos::solve
