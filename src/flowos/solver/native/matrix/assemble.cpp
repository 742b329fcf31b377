#include "matrix/assemble.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/at_once.h"
#include "matrix/error.h"
#include "matrix/matrix.h"

namespace flowos::solve {
namespace {

using Lists = std::span<const std::vector<Entry>>;

constexpr std::int64_t kMax = std::numeric_limits<std::int32_t>::max();
constexpr std::size_t kLong = 32;  // from where on insertion is no way to sort a row

int chosen(int threads) {
  return threads > 0 ? threads : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

// Rows that one thread takes care of.
struct Range {
  std::int32_t begin;
  std::int32_t end;

  bool holds(std::int32_t row) const { return row >= begin && row < end; }
};

Range share(std::int64_t rows, int part, int parts) {
  return {.begin = static_cast<std::int32_t>(rows * part / parts),
          .end = static_cast<std::int32_t>(rows * (part + 1) / parts)};
}

// Calls visit(row, column, value) for all that falls into these rows, in the order of the lists.
template <class Visit>
void visit_rows(Lists lists, Mirror mirror, Range range, const Visit& visit) {
  for (const std::vector<Entry>& list : lists) {
    for (const Entry& entry : list) {
      if (range.holds(entry.row)) visit(entry.row, entry.column, entry.value);
      if (mirror == Mirror::no || entry.row == entry.column) continue;
      if (range.holds(entry.column)) visit(entry.column, entry.row, entry.value);
    }
  }
}

class Assembly {
 public:
  Assembly(std::int64_t rows, Lists lists, Mirror mirror, int threads)
      : rows_(rows), lists_(lists), mirror_(mirror), threads_(threads) {}

  OwnedCsr<std::int32_t> build() {
    count();
    fill();
    std::vector<std::int32_t> kept(size(rows_));
    in_ranges([&](Range range) {
      for (std::int32_t row = range.begin; row < range.end; ++row) kept[size(row)] = tidy(row);
    });
    close_gaps(kept);
    return std::move(matrix_);
  }

 private:
  using Pair = std::pair<std::int32_t, double>;

  template <class Number>
  static std::size_t size(Number number) {
    return static_cast<std::size_t>(number);
  }

  template <class Work>
  void in_ranges(const Work& work) {
    at_once(threads_, [&](int part) { work(share(rows_, part, threads_)); });
  }

  void count() {
    std::vector<std::int32_t>& starts = matrix_.starts;
    std::size_t all = 0;
    for (const std::vector<Entry>& list : lists_) all += list.size();
    if (all > size(kMax) / (mirror_ == Mirror::no ? 1 : 2)) {
      throw MatrixError(std::to_string(all) +
                        " entries are too many: at most 2147483647 in both triangles");
    }
    starts.resize(size(rows_) + 1);
    in_ranges([&](Range range) {
      visit_rows(lists_, mirror_, range,
                 [&](std::int32_t row, std::int32_t, double) { ++starts[size(row) + 1]; });
    });
    std::partial_sum(starts.begin(), starts.end(), starts.begin());
  }

  void fill() {
    const auto entries = size(matrix_.starts.back());
    matrix_.columns.resize(entries);
    matrix_.values.resize(entries);
    std::vector<std::int32_t> next(matrix_.starts.begin(), matrix_.starts.end() - 1);
    in_ranges([&](Range range) {
      visit_rows(lists_, mirror_, range, [&](std::int32_t row, std::int32_t column, double value) {
        const auto at = size(next[size(row)]++);
        matrix_.columns[at] = column;
        matrix_.values[at] = value;
      });
    });
  }

  // Sorts a row and adds what is there several times: how many entries are left.
  std::int32_t tidy(std::int32_t row) {
    const std::int32_t start = matrix_.starts[size(row)];
    const auto count = size(matrix_.starts[size(row) + 1] - start);
    const std::span columns(matrix_.columns.data() + start, count);
    const std::span values(matrix_.values.data() + start, count);
    sort(columns, values);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (kept > 0 && columns[kept - 1] == columns[i]) {
        values[kept - 1] += values[i];
      } else {
        columns[kept] = columns[i];
        values[kept++] = values[i];
      }
    }
    return static_cast<std::int32_t>(kept);
  }

  // What has one column stays in its order. Rows are short as a rule, and sorted already.
  static void sort(std::span<std::int32_t> columns, std::span<double> values) {
    if (columns.size() > kLong) return sort_long(columns, values);
    for (std::size_t i = 1; i < columns.size(); ++i) {
      const Pair moved = {columns[i], values[i]};
      std::size_t at = i;
      for (; at > 0 && columns[at - 1] > moved.first; --at) {
        columns[at] = columns[at - 1];
        values[at] = values[at - 1];
      }
      columns[at] = moved.first;
      values[at] = moved.second;
    }
  }

  static void sort_long(std::span<std::int32_t> columns, std::span<double> values) {
    std::vector<Pair> row(columns.size());
    for (std::size_t i = 0; i < row.size(); ++i) row[i] = {columns[i], values[i]};
    std::stable_sort(row.begin(), row.end(),
                     [](const Pair& one, const Pair& other) { return one.first < other.first; });
    for (std::size_t i = 0; i < row.size(); ++i) {
      columns[i] = row[i].first;
      values[i] = row[i].second;
    }
  }

  void close_gaps(const std::vector<std::int32_t>& kept) {
    std::int32_t end = 0;
    for (std::size_t row = 0; row < kept.size(); ++row) {
      const std::int32_t start = std::exchange(matrix_.starts[row], end);
      if (start != end) {
        std::copy_n(matrix_.columns.data() + start, kept[row], matrix_.columns.data() + end);
        std::copy_n(matrix_.values.data() + start, kept[row], matrix_.values.data() + end);
      }
      end += kept[row];
    }
    matrix_.starts.back() = end;
    matrix_.columns.resize(size(end));
    matrix_.values.resize(size(end));
  }

  std::int64_t rows_;
  Lists lists_;
  Mirror mirror_;
  int threads_;
  OwnedCsr<std::int32_t> matrix_;
};

// The entries of these rows, as the matrix has them, where `wanted` says so.
template <class Index, class Wanted>
std::vector<Entry> entries_of(const Csr<Index>& matrix, Range range, const Wanted& wanted) {
  std::vector<Entry> found;
  for (std::int32_t row = range.begin; row < range.end; ++row) {
    const Index start = matrix.starts[row];
    const Index end = matrix.starts[row + 1];
    if (start < 0 || start > end || end > matrix.starts[matrix.rows]) {
      throw MatrixError("row " + std::to_string(row) + " ends before it begins: indptr must grow");
    }
    for (Index i = start; i < end; ++i) {
      const Index column = matrix.columns[i];
      if (column < 0 || column >= matrix.rows) {
        throw MatrixError("row " + std::to_string(row) + " has column " + std::to_string(column) +
                          ": there are 0 to " + std::to_string(matrix.rows - 1));
      }
      const Entry entry = {
          .row = row, .column = static_cast<std::int32_t>(column), .value = matrix.values[i]};
      if (wanted(entry)) found.push_back(entry);
    }
  }
  return found;
}

template <class Index, class Wanted>
std::vector<std::vector<Entry>> lists_of(const Csr<Index>& matrix, int threads,
                                         const Wanted& wanted) {
  if (matrix.rows > kMax) {
    throw MatrixError(std::to_string(matrix.rows) + " rows are too many: at most 2147483647");
  }
  std::vector<std::vector<Entry>> lists(static_cast<std::size_t>(threads));
  at_once(threads, [&](int part) {
    lists[static_cast<std::size_t>(part)] =
        entries_of(matrix, share(matrix.rows, part, threads), wanted);
  });
  return lists;
}

// Throws MatrixError for an upper triangle: empty below the diagonal and not above it.
template <class Index>
void refuse_upper(const Csr<Index>& matrix) {
  std::int64_t above = -1, its_column = 0;
  for (std::int64_t row = 0; row < matrix.rows; ++row) {
    for (Index i = matrix.starts[row]; i < matrix.starts[row + 1]; ++i) {
      if (matrix.values[i] == 0 || matrix.columns[i] == row) continue;
      if (matrix.columns[i] < row) return;
      if (above < 0) {
        above = row;
        its_column = matrix.columns[i];
      }
    }
  }
  if (above < 0) return;
  throw MatrixError("lower: the matrix has an entry (" + std::to_string(above) + ", " +
                    std::to_string(its_column) +
                    ") above the diagonal and none below it; of an upper triangle take the "
                    "transpose, A.T");
}

}  // namespace

OwnedCsr<std::int32_t> assemble(std::int64_t rows, std::span<const std::vector<Entry>> lists,
                                Mirror mirror, int threads) {
  return Assembly(rows, lists, mirror, chosen(threads)).build();
}

template <class Index>
OwnedCsr<std::int32_t> from_lower(const Csr<Index>& matrix, int threads) {
  const int parts = chosen(threads);
  const auto lists =
      lists_of(matrix, parts, [](const Entry& entry) { return entry.column <= entry.row; });
  refuse_upper(matrix);
  return assemble(matrix.rows, lists, Mirror::across_diagonal, parts);
}

template <class Index>
OwnedCsr<std::int32_t> symmetrized(const Csr<Index>& matrix, int threads) {
  const int parts = chosen(threads);
  auto lists = lists_of(matrix, parts, [](const Entry&) { return true; });
  for (std::vector<Entry>& list : lists) {
    for (Entry& entry : list) entry.value *= entry.row == entry.column ? 1.0 : 0.5;
  }
  return assemble(matrix.rows, lists, Mirror::across_diagonal, parts);
}

template OwnedCsr<std::int32_t> from_lower(const Csr<std::int32_t>&, int);
template OwnedCsr<std::int32_t> from_lower(const Csr<std::int64_t>&, int);
template OwnedCsr<std::int32_t> symmetrized(const Csr<std::int32_t>&, int);
template OwnedCsr<std::int32_t> symmetrized(const Csr<std::int64_t>&, int);

}  // namespace flowos::solve
