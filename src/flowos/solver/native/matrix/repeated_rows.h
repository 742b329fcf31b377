#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "matrix/matrix.h"

namespace flowos::solve {

// Whether a row has as many entries as the row before it, and each of them one column further: so
// are most rows of a grid. In arithmetic that wraps, as nothing is known of columns yet; without
// branches between entries, so that several are compared at once.
template <class Index>
bool has_columns_of_row_before(const Csr<Index>& matrix, std::int64_t row) {
  if (matrix.repeats && matrix.repeats[row] != 0) return true;
  using Bits = std::make_unsigned_t<Index>;
  const Index start = matrix.starts[row], before = matrix.starts[row - 1], count = start - before;
  if (matrix.starts[row + 1] - start != count) return false;
  const Index* const columns = matrix.columns + start;
  const Index* const columns_before = matrix.columns + before;
  Bits differ = 0;
  for (Index i = 0; i < count; ++i) {
    differ |= (static_cast<Bits>(columns[i]) - static_cast<Bits>(columns_before[i])) ^ Bits { 1 };
  }
  return differ == 0;
}

// Whether it is the row before, one further, with values of the same bits. Where that is known
// already, rows are not compared.
template <class Index>
bool repeats_row_before(const Csr<Index>& matrix, std::int64_t row) {
  if (matrix.repeats) return matrix.repeats[row] != 0;
  if (!has_columns_of_row_before(matrix, row)) return false;
  const Index start = matrix.starts[row], count = matrix.starts[row + 1] - start;
  const double* const values = matrix.values + start;
  std::uint64_t differ = 0;
  for (Index i = 0; i < count; ++i) {
    differ |=
        std::bit_cast<std::uint64_t>(values[i]) ^ std::bit_cast<std::uint64_t>(values[i - count]);
  }
  return differ == 0;
}

}  // namespace flowos::solve
