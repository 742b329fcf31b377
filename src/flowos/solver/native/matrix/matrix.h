#pragma once

#include <cstdint>
#include <vector>

namespace flowos::solve {

// A symmetric matrix as compressed sparse rows, looked at where it lies; both triangles are there.
// Index is int32_t or int64_t, as in scipy.sparse. Rows need not be sorted.
template <class Index>
struct Csr {
  std::int64_t rows = 0;
  const Index* starts = nullptr;   // rows + 1
  const Index* columns = nullptr;  // starts[rows]
  const double* values = nullptr;  // starts[rows]
  // Of each row whether it is known to be the one before, a column further; null: nothing is.
  const std::uint8_t* repeats = nullptr;
};

// An entry, of which a row may hold several parts; 0 where it holds none.
template <class Index>
double entry_of(const Csr<Index>& matrix, std::int64_t row, std::int64_t column) {
  double sum = 0;
  for (Index k = matrix.starts[row]; k < matrix.starts[row + 1]; ++k) {
    if (matrix.columns[k] == column) sum += matrix.values[k];
  }
  return sum;
}

// Asks memory for a row that will be read soon, where rows are not read in their order.
template <class Index>
void prefetch_row(const Csr<Index>& matrix, std::int64_t row) {
  const Index start = matrix.starts[row];
  __builtin_prefetch(matrix.columns + start);
  __builtin_prefetch(matrix.values + start);
}

// The same with arrays of its own: what was read, generated or put together.
template <class Index>
struct OwnedCsr {
  std::vector<Index> starts;
  std::vector<Index> columns;
  std::vector<double> values;

  Csr<Index> view() const {
    return {.rows = static_cast<std::int64_t>(starts.size()) - 1,
            .starts = starts.data(),
            .columns = columns.data(),
            .values = values.data()};
  }
};

}  // namespace flowos::solve
