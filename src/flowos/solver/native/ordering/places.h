#pragma once

#include <cstdint>
#include <limits>

#include "matrix/error.h"

namespace flowos::solve {

// Places are counted with 32 bits.
inline void check_places(std::int64_t groups, int block_rows, int lanes) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int32_t>::max();
  if (groups > kMax / block_rows / lanes) {
    throw MatrixError("the matrix is too large: with padding it has more than 2147483647 rows");
  }
}

}  // namespace flowos::solve
