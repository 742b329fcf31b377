#include "base/exact_sum.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace flowos::solve {
namespace {

constexpr std::size_t kInfinite = 67, kMinusInfinite = 68, kNotANumber = 69;
static_assert(kNotANumber + 1 == ExactSum::kLimbs);
constexpr std::size_t kDigits = 67;  // of the finite sum: 2^1024 is in the 65th, carries above

constexpr int kLowest = -1074;  // the exponent of the least bit of a double

using Digits = std::array<std::int64_t, kDigits>;

// Makes all digits but the highest, which has the sign, lie in 0..2^32-1.
void carry(Digits& digits) {
  for (std::size_t i = 0; i + 1 < kDigits; ++i) {
    const std::int64_t over = digits[i] >> 32;
    digits[i] -= over * (std::int64_t{1} << 32);
    digits[i + 1] += over;
  }
}

std::uint64_t digit(const Digits& digits, std::size_t at) {
  return at < kDigits ? static_cast<std::uint64_t>(digits[at]) : 0;
}

// The 53 bits from this one on.
std::uint64_t mantissa_at(const Digits& digits, int bit) {
  const auto at = static_cast<std::size_t>(bit / 32);
  const int offset = bit % 32;
  std::uint64_t bits = (digit(digits, at) | digit(digits, at + 1) << 32) >> offset;
  if (offset > 0) bits |= digit(digits, at + 2) << (64 - offset);
  return bits & ((std::uint64_t{1} << 53) - 1);
}

bool any_below(const Digits& digits, int bit) {
  const auto at = static_cast<std::size_t>(bit / 32);
  for (std::size_t i = 0; i < at; ++i) {
    if (digits[i] != 0) return true;
  }
  return (digit(digits, at) & ((std::uint64_t{1} << (bit % 32)) - 1)) != 0;
}

// Of digits that are not negative.
double rounded(const Digits& digits) {
  std::size_t top = kDigits;
  while (top > 0 && digits[top - 1] == 0) --top;
  if (top == 0) return 0;
  const int bits = static_cast<int>(32 * (top - 1) + std::bit_width(digit(digits, top - 1)));
  const int lowest = bits > 53 ? bits - 53 : 0;
  std::uint64_t mantissa = mantissa_at(digits, lowest);
  if (lowest > 0) {
    const bool half = (mantissa_at(digits, lowest - 1) & 1) != 0;
    if (half && ((mantissa & 1) != 0 || any_below(digits, lowest - 1))) ++mantissa;
  }
  return std::ldexp(static_cast<double>(mantissa), lowest + kLowest);
}

}  // namespace

void ExactSum::add_no_number(bool nan, bool negative) {
  ++limbs_[nan ? kNotANumber : negative ? kMinusInfinite : kInfinite];
}

void ExactSum::add(const ExactSum& other) {
  for (std::size_t i = 0; i < kLimbs; ++i) limbs_[i] += other.limbs_[i];
}

double ExactSum::value() const {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const bool up = limbs_[kInfinite] != 0;
  const bool down = limbs_[kMinusInfinite] != 0;
  if (limbs_[kNotANumber] != 0 || (up && down)) return std::numeric_limits<double>::quiet_NaN();
  if (up) return kInfinity;
  if (down) return -kInfinity;
  Digits digits;
  for (std::size_t i = 0; i < kDigits; ++i) digits[i] = limbs_[i];
  carry(digits);
  if (digits.back() >= 0) return rounded(digits);
  for (std::int64_t& value : digits) value = -value;
  carry(digits);
  return -rounded(digits);
}

}  // namespace flowos::solve
