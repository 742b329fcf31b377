#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>

#include "base/for_each.h"
#include "matrix/error.h"
#include "ordering/groups.h"
#include "threads/team.h"

namespace flowos::solve {

// The greatest absolute value; not finite if one of them is not.
inline double greatest_of(std::span<const double> values, int threads) {
  constexpr std::uint64_t kSign = std::uint64_t{1} << 63;
  std::atomic<std::uint64_t> all = 0;  // bits of what is not negative are in the order of values
  share_out(0, std::ssize(values), 1, threads, [&](Groups some) {
    std::uint64_t greatest = 0;
    for (std::int64_t i = some.first; i < some.past; ++i) {
      greatest = std::max(greatest, std::bit_cast<std::uint64_t>(values[at(i)]) & ~kSign);
    }
    std::uint64_t seen = all;
    while (greatest > seen && !all.compare_exchange_weak(seen, greatest)) {
    }
  });
  return std::bit_cast<double>(all.load());
}

// Its greatest absolute value. Throws MatrixError if it is no vector of this matrix.
inline double checked(std::span<const double> values, const char* name, std::int64_t rows,
                      int threads) {
  if (static_cast<std::int64_t>(values.size()) != rows) {
    throw MatrixError(std::string(name) + " has " + std::to_string(values.size()) +
                      " values, but the matrix has " + std::to_string(rows) + " rows");
  }
  const double greatest = greatest_of(values, threads);
  if (std::isfinite(greatest)) return greatest;
  const auto first =
      std::ranges::find_if(values, [](double value) { return !std::isfinite(value); });
  const char* bad = std::isnan(*first) ? "nan" : *first > 0 ? "inf" : "-inf";
  throw MatrixError(std::string(name) + "[" + std::to_string(first - values.begin()) + "] is " +
                    bad + ": expected finite numbers");
}

}  // namespace flowos::solve
