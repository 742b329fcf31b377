#include "matrix/properties.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "base/for_each.h"
#include "matrix/matrix.h"
#include "matrix/repeated_rows.h"

namespace flowos::solve {
namespace {

constexpr std::int64_t kRun = 1 << 14;
constexpr double kRounding = 1e-10;  // of the others, when they are compared with the diagonal

// A few different values, or too many.
class Few {
 public:
  // Nothing is to be learnt from it.
  bool knows(double value) const { return value == last_ || many_; }
  void add(double value) {
    if (knows(value)) return;
    last_ = value;
    const auto end = values_.begin() + count_;
    if (std::find(values_.begin(), end, value) != end) return;
    many_ = count_ == values_.size();
    if (!many_) values_[count_++] = value;
  }
  void add(const Few& other) {
    many_ = many_ || other.many_;
    for (std::size_t i = 0; i < other.count_; ++i) add(other.values_[i]);
  }
  std::vector<double> values() const {
    if (many_) return {};
    return {values_.begin(), values_.begin() + count_};
  }

 private:
  std::array<double, 4> values_ = {};
  std::size_t count_ = 0;
  bool many_ = false;
  double last_ = 0;  // zeros are no entries
};

// SplitMix64's steps (Steele, Lea and Flood, OOPSLA 2014), but for the last.
std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  return (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
}

std::uint64_t number_of(std::int64_t row) {
  return mixed(static_cast<std::uint64_t>(row + 1) * 0x9e3779b97f4a7c15ULL);
}

std::uint64_t number_of(double value, std::uint64_t distance) {
  return mixed(std::bit_cast<std::uint64_t>(value) ^ distance * 0xd1342543de82ef95ULL);
}

double kept_if(bool keep, double value) {
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(value) &
                               (std::uint64_t{0} - static_cast<std::uint64_t>(keep)));
}

// Properties of some rows. Rows that repeat the one before them are only compared with it.
template <class Index>
class Look {
 public:
  explicit Look(const Csr<Index>& matrix) : matrix_(matrix) {}

  // Until there is a bad one. repeats: see Csr.
  void over(std::int64_t first, std::int64_t past, std::vector<std::uint8_t>& repeats) {
    bad_row_ = bad_start(first, past);
    std::int64_t row = first;
    while (row < past && bad_row_ < 0) {
      std::int64_t end = row + 1;
      while (end < past && repeats_row_before(matrix_, end)) repeats[at(end++)] = 1;
      if (!add(row, end - row)) {
        bad_row_ = row;
      } else if (end - row > 1 && !has_columns(end - 1)) {
        for (bad_row_ = row; has_columns(bad_row_);) ++bad_row_;
      }
      row = end;
    }
  }

  void add(const Look& other) {
    if (bad_row_ < 0) bad_row_ = other.bad_row_;
    fingerprint_ += other.fingerprint_;
    min_diagonal_ = std::min(min_diagonal_, other.min_diagonal_);
    max_diagonal_ = std::max(max_diagonal_, other.max_diagonal_);
    negative_ = negative_ && other.negative_;
    values_.add(other.values_);
    dominant_ = dominant_ && other.dominant_;
    shares_ += other.shares_;
  }

  Facts facts(std::vector<std::uint8_t> repeats) const {
    return {.bad_row = bad_row_,
            .mirrored = fingerprint_ == 0,
            .evenness = {.min_diagonal = min_diagonal_,
                         .max_diagonal = max_diagonal_,
                         .negative = negative_,
                         .values = values_.values()},
            .dominance = {.max_diagonal = max_diagonal_,
                          .everywhere = dominant_,
                          .share = shares_ / static_cast<double>(matrix_.rows)},
            .repeats = std::move(repeats)};
  }

 private:
  std::int64_t bad_start(std::int64_t first, std::int64_t past) const {
    const Index all = matrix_.starts[matrix_.rows];
    const auto good = [&](std::int64_t row) {
      return matrix_.starts[row] >= 0 && matrix_.starts[row] <= matrix_.starts[row + 1] &&
             matrix_.starts[row + 1] <= all;
    };
    for (std::int64_t row = first; row < past; ++row) {
      if (!good(row)) return row;
    }
    return -1;
  }

  bool has_columns(std::int64_t row) const {
    bool inside = true;
    for (Index k = matrix_.starts[row]; k < matrix_.starts[row + 1]; ++k) {
      inside = inside && matrix_.columns[k] >= 0 && matrix_.columns[k] < matrix_.rows;
    }
    return inside;
  }

  // A row that comes so many times. False: it is bad.
  bool add(std::int64_t row, std::int64_t times) {
    double diagonal = 0, others = 0;
    bool positive = false, inside = true;
    const auto rows = static_cast<std::uint64_t>(matrix_.rows);
    for (Index k = matrix_.starts[row]; k < matrix_.starts[row + 1]; ++k) {
      const std::int64_t column = matrix_.columns[k];
      const double value = matrix_.values[k];
      const bool own = column == row;
      inside &= static_cast<std::uint64_t>(column) < rows;
      diagonal += kept_if(own, value);
      others += kept_if(!own, std::fabs(value));
      positive |= !own & (value > 0);
      if (!values_.knows(value) && !own) values_.add(value);
    }
    if (!inside || !(diagonal > 0) || !std::isfinite(diagonal) || !is_finite(row, others)) {
      return false;
    }
    negative_ = negative_ && !positive;
    min_diagonal_ = std::min(min_diagonal_, diagonal);
    max_diagonal_ = std::max(max_diagonal_, diagonal);
    dominant_ = dominant_ && others <= diagonal * (1 + kRounding);
    shares_ += others / diagonal * static_cast<double>(times);
    add_to_fingerprint(row, times);
    return true;
  }

  // Finite values may have a sum that is not.
  bool is_finite(std::int64_t row, double sum) const {
    if (std::isfinite(sum)) return true;
    return std::all_of(matrix_.values + matrix_.starts[row],
                       matrix_.values + matrix_.starts[row + 1],
                       [](double value) { return std::isfinite(value); });
  }

  // Entries above the diagonal are added and those below are taken off, each as a number for its
  // value and distance from the diagonal, times one for the lower of its row and column: the
  // numbers of rows that follow one another add up to the difference of two.
  void add_to_fingerprint(std::int64_t row, std::int64_t times) {
    const std::uint64_t here = number_of(row + times) - number_of(row);
    for (Index k = matrix_.starts[row]; k < matrix_.starts[row + 1]; ++k) {
      const std::int64_t column = matrix_.columns[k];
      const double value = matrix_.values[k];
      if (column > row) {
        fingerprint_ += number_of(value, static_cast<std::uint64_t>(column - row)) * here;
      } else if (column < row) {
        fingerprint_ -= number_of(value, static_cast<std::uint64_t>(row - column)) *
                        (number_of(column + times) - number_of(column));
      }
    }
  }

  Csr<Index> matrix_;
  std::int64_t bad_row_ = -1;
  std::uint64_t fingerprint_ = 0;
  double min_diagonal_ = std::numeric_limits<double>::infinity(), max_diagonal_ = 0;
  bool negative_ = true, dominant_ = true;
  double shares_ = 0;
  Few values_;
};

}  // namespace

// Runs are of a fixed length, so that sums are the same whatever the threads.
template <class Index>
Facts facts_of(const Csr<Index>& matrix, int threads) {
  std::vector<Look<Index>> looks(at((matrix.rows + kRun - 1) / kRun), Look<Index>(matrix));
  std::vector<std::uint8_t> repeats(at(matrix.rows));
  for_runs(matrix.rows, kRun, threads, [&](std::int64_t first, std::int64_t past) {
    Look<Index> look(matrix);
    look.over(first, past, repeats);
    looks[at(first / kRun)] = look;
  });
  Look<Index> all(matrix);
  for (const Look<Index>& look : looks) all.add(look);
  return all.facts(std::move(repeats));
}

template Facts facts_of(const Csr<std::int32_t>&, int);
template Facts facts_of(const Csr<std::int64_t>&, int);

}  // namespace flowos::solve
