#include "matrix/check.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>

#include "base/for_each.h"
#include "matrix/error.h"
#include "matrix/matrix.h"
#include "matrix/properties.h"

namespace flowos::solve {
namespace {

constexpr std::int64_t kRun = 1 << 14;
constexpr double kAsymmetry = 1e-12;
constexpr double kRowSum = 1e-10;  // of the sum of sizes

std::string in_words(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%g", value);
  return text.data();
}

std::string row_named(std::int64_t row) { return "row " + std::to_string(row); }

// The least row that any thread complains of.
class First {
 public:
  void note(std::int64_t row) {
    std::int64_t known = row_.load(std::memory_order_relaxed);
    while (row < known && !row_.compare_exchange_weak(known, row)) {
    }
  }
  bool any() const { return row_ != kNone; }
  std::int64_t row() const { return row_; }

 private:
  static constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
  std::atomic<std::int64_t> row_ = kNone;
};

template <class Index>
[[noreturn]] void tell(const Csr<Index>& matrix, std::int64_t row) {
  if (matrix.starts[row] < 0 || matrix.starts[row + 1] < matrix.starts[row] ||
      matrix.starts[row + 1] > matrix.starts[matrix.rows]) {
    throw MatrixError(row_named(row) + ": ends before it begins, or after the last");
  }
  for (Index k = matrix.starts[row]; k < matrix.starts[row + 1]; ++k) {
    const std::int64_t column = matrix.columns[k];
    if (column < 0 || column >= matrix.rows) {
      throw MatrixError(row_named(row) + ": has column " + std::to_string(column) +
                        ", but there are " + std::to_string(matrix.rows));
    }
    if (!std::isfinite(matrix.values[k])) {
      throw MatrixError(row_named(row) + ": the entry of column " + std::to_string(column) +
                        " is " + (std::isnan(matrix.values[k]) ? "NaN" : "infinite"));
    }
  }
  const double diagonal = entry_of(matrix, row, row);
  throw MatrixError(row_named(row) + ": the diagonal is " +
                    (diagonal == 0 ? "0 or missing" : in_words(diagonal)) +
                    "; only positive definite matrices can be solved with");
}

// Entry by entry, where the fingerprints differ: the sums of an entry may have been rounded.
template <class Index>
void check_symmetry(const Csr<Index>& matrix, int threads) {
  First bad;
  const auto differs = [&](std::int64_t row, std::int64_t column) {
    const double apart = std::fabs(entry_of(matrix, row, column) - entry_of(matrix, column, row));
    const double size =
        std::sqrt(entry_of(matrix, row, row)) * std::sqrt(entry_of(matrix, column, column));
    return apart > kAsymmetry * size;
  };
  const auto first_in = [&](std::int64_t row) -> std::int64_t {
    for (Index k = matrix.starts[row]; k < matrix.starts[row + 1]; ++k) {
      if (matrix.columns[k] != row && differs(row, matrix.columns[k])) return matrix.columns[k];
    }
    return -1;
  };
  for_runs(matrix.rows, kRun, threads, [&](std::int64_t first, std::int64_t end) {
    for (std::int64_t row = first; row < end; ++row) {
      if (first_in(row) < 0) continue;
      bad.note(row);
      return;
    }
  });
  if (!bad.any()) return;
  const std::string row = std::to_string(bad.row()), column = std::to_string(first_in(bad.row()));
  throw MatrixError("the matrix is not symmetric: its entries (" + row + ", " + column + ") and (" +
                    column + ", " + row +
                    ") differ; of one with a triangle alone say `lower`, and (A + A') / 2 is taken "
                    "by `symmetrize`");
}

}  // namespace

template <class Index>
Facts check(const Csr<Index>& matrix, int threads) {
  if (matrix.rows <= 0) throw MatrixError("the matrix is empty");
  if (matrix.rows > std::numeric_limits<std::int32_t>::max()) {
    throw MatrixError("the matrix is too large: it has more than 2147483647 rows");
  }
  Facts facts = facts_of(matrix, threads);
  if (facts.bad_row >= 0) tell(matrix, facts.bad_row);
  if (!facts.mirrored) check_symmetry(matrix, threads);
  return facts;
}

template <class Index>
void check_places(const Csr<Index>& matrix, Index entries) {
  const auto is_inside = [&](std::int64_t row) {
    const Index start = matrix.starts[row], past = matrix.starts[row + 1];
    return start >= 0 && past <= entries &&
           std::all_of(matrix.columns + start, matrix.columns + std::max(start, past),
                       [&](std::int64_t column) { return column >= 0 && column < matrix.rows; });
  };
  for (std::int64_t row = 0; row < matrix.rows; ++row) {
    if (is_inside(row)) continue;
    throw MatrixError(row_named(row) + ": " + kOverwritten);
  }
}

template <class Index>
void check_takes_constants_to_zero(const Csr<Index>& matrix, int threads) {
  First bad;
  for_runs(matrix.rows, kRun, threads, [&](std::int64_t first, std::int64_t end) {
    for (std::int64_t row = first; row < end; ++row) {
      double sum = 0, size = 0;
      for (Index k = matrix.starts[row]; k < matrix.starts[row + 1]; ++k) {
        sum += matrix.values[k];
        size += std::fabs(matrix.values[k]);
      }
      if (std::fabs(sum) <= kRowSum * size) continue;
      bad.note(row);
      return;
    }
  });
  if (bad.any()) {
    throw MatrixError(row_named(bad.row()) +
                      ": does not add up to 0, so the nullspace is not that of constants; leave "
                      "nullspace out");
  }
}

template Facts check(const Csr<std::int32_t>&, int);
template Facts check(const Csr<std::int64_t>&, int);
template void check_places(const Csr<std::int32_t>&, std::int32_t);
template void check_places(const Csr<std::int64_t>&, std::int64_t);
template void check_takes_constants_to_zero(const Csr<std::int32_t>&, int);
template void check_takes_constants_to_zero(const Csr<std::int64_t>&, int);

}  // namespace flowos::solve
