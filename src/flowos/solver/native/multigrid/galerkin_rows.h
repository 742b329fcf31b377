#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/for_each.h"
#include "matrix/matrix.h"
#include "multigrid/aggregates.h"
#include "multigrid/members.h"

namespace flowos::solve {

struct CoarseEntry {
  std::int32_t column;
  std::int32_t entries;  // of the matrix, that came to it
  double value;
};

// What holds an aggregate together.
struct Inside {
  double sum = 0;  // of |entries| between its rows
  int count = 0;
};

// Rows of P'AP, one after another, where P spreads one value over an aggregate. One for each
// thread.
template <class Index>
class CoarseRows {
 public:
  CoarseRows(const Csr<Index>& matrix, const Aggregates& aggregates, const Members& members)
      : matrix_(matrix),
        of_(aggregates.of.data()),
        members_(members),
        where_(at(aggregates.count)),
        row_(2) {}

  // The diagonal comes first. What is new is decided without a branch, which would be mispredicted:
  // the entry after the last is always 0.
  std::span<const CoarseEntry> row(std::int64_t aggregate) {
    const auto own = static_cast<std::int32_t>(aggregate);
    const std::int64_t begin = begin_ += static_cast<std::int64_t>(row_.size());
    row_[0] = {.column = own, .entries = 0, .value = 0};
    row_[1] = {};
    where_[at(own)] = begin;
    Inside inside;
    std::size_t count = 1;
    if (aggregate + kAhead < members_.count()) {
      for (const std::int64_t row : members_.of(aggregate + kAhead)) prefetch_row(matrix_, row);
    }
    for (const std::int64_t row : members_.of(aggregate)) {
      const Index start = matrix_.starts[row], past = matrix_.starts[row + 1];
      make_room(count + static_cast<std::size_t>(past - start) + 1);
      for (Index k = start; k < past; ++k) {
        const std::int32_t column = of_[matrix_.columns[k]];
        const double value = matrix_.values[k];
        std::int64_t& where = where_[at(column)];
        const auto is_new = static_cast<std::int64_t>(where < begin);
        where += (begin + static_cast<std::int64_t>(count) - where) & -is_new;
        count += at(is_new);
        row_[count] = {};
        CoarseEntry& entry = row_[at(where - begin)];
        entry.column = column;
        ++entry.entries;
        entry.value += value;
        const int is_inside =
            static_cast<int>(column == own) & static_cast<int>(matrix_.columns[k] != row);
        inside.sum += std::fabs(value) * is_inside;
        inside.count += is_inside;
      }
    }
    inside_ = inside;
    return {row_.data(), count};
  }

  // Of the latest row.
  const Inside& inside() const { return inside_; }

 private:
  static constexpr std::int64_t kAhead = 6;  // so many aggregates before memory is read

  void make_room(std::size_t most) {
    if (most > row_.size()) row_.resize(2 * most);
  }

  const Csr<Index>& matrix_;
  const std::int32_t* of_;
  const Members& members_;
  std::int64_t begin_ = 1;           // what the first entry of the row has in where_
  std::vector<std::int64_t> where_;  // of each column its entry; below begin_: it has none yet
  std::vector<CoarseEntry> row_;
  Inside inside_;
};

}  // namespace flowos::solve
