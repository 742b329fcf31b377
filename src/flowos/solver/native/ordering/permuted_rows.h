#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "matrix/matrix.h"
#include "ordering/groups.h"
#include "ordering/ordering.h"

namespace flowos::solve {

// An entry of a row: where its column lies in an ordering, and its value there.
struct Placed {
  std::int32_t place;
  double value;
};

// Of places that follow each other: entries starts[i] to starts[i + 1] are those of the i-th.
struct PlacedRows {
  std::vector<std::size_t> starts;
  std::vector<Placed> entries;
};

// Some hundred rows are read before it is looked at what their entries are: else each guess at that
// which is wrong would wait for memory.
template <class Index, class ValueOf>
void read_rows(const Csr<Index>& matrix, const Ordering& ordering, std::size_t first,
               std::size_t count, const ValueOf& value_of, PlacedRows& rows) {
  constexpr std::size_t kAhead = 24;
  auto& [starts, entries] = rows;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t place = first + i;
    if (i + kAhead < count && ordering.row[place + kAhead] >= 0) {
      prefetch_row(matrix, ordering.row[place + kAhead]);
    }
    const std::int64_t row = ordering.row[place];
    const Index start = row < 0 ? 0 : matrix.starts[row];
    const Index end = row < 0 ? 0 : matrix.starts[row + 1];
    std::size_t entry = starts[i];
    starts[i + 1] = entry + static_cast<std::size_t>(end - start);
    if (starts[i + 1] > entries.size()) entries.resize(2 * starts[i + 1]);
    for (Index k = start; k < end; ++k) {
      const auto column = static_cast<std::size_t>(matrix.columns[k]);
      entries[entry++] = {ordering.place[column], value_of(row, k)};
    }
  }
}

// Calls visit(place, entries) for all places of these groups, in their order; padding has no
// entries. value_of(row, k): of an entry.
template <class Index, class ValueOf, class Visit>
void visit_rows(const Csr<Index>& matrix, const Ordering& ordering, Groups groups,
                const ValueOf& value_of, const Visit& visit) {
  constexpr std::int64_t kMax = 512;
  PlacedRows rows{.starts = std::vector<std::size_t>(kMax + 1), .entries = {}};
  const std::int64_t past = groups.past * ordering.group_places();
  for (std::int64_t first = groups.first * ordering.group_places(); first < past; first += kMax) {
    const auto count = static_cast<std::size_t>(std::min(kMax, past - first));
    read_rows(matrix, ordering, static_cast<std::size_t>(first), count, value_of, rows);
    for (std::size_t i = 0; i < count; ++i) {
      visit(first + static_cast<std::int64_t>(i),
            std::span<const Placed>(rows.entries.data() + rows.starts[i],
                                    rows.entries.data() + rows.starts[i + 1]));
    }
  }
}

}  // namespace flowos::solve
