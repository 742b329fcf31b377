#pragma once

#include <cstddef>
#include <cstdint>

#include "ordering/ordering.h"

namespace flowos::solve {

// Of an ordering, one after another.
struct Groups {
  std::int64_t first, past;
};

// work(row, place) for each row of these groups, in their order.
template <class Work>
void each_row(const Ordering& ordering, Groups groups, const Work& work) {
  const auto past = static_cast<std::size_t>(groups.past * ordering.group_places());
  auto place = static_cast<std::size_t>(groups.first * ordering.group_places());
  for (; place < past; ++place) {
    if (ordering.row[place] >= 0) work(static_cast<std::size_t>(ordering.row[place]), place);
  }
}

}  // namespace flowos::solve
