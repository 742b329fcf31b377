#pragma once

#include <cstdint>
#include <vector>

#include "ordering/ordering.h"

namespace flowos::solve {

// Of each group the rank that owns it. Blocks, colours and places stay those of the whole matrix,
// so that x does not depend on it.
using Owners = std::vector<std::int32_t>;

// Every rank gets the same share of each colour, in the order of the groups: of tiles these are
// slabs of the grid, and of grown blocks what was grown one after the other.
inline Owners split_in_order(const Ordering& order, int ranks) {
  Owners owner(static_cast<std::size_t>(order.groups()));
  for (int colour = 0; colour < order.colours(); colour++) {
    const std::int64_t start = order.colour_starts[static_cast<std::size_t>(colour)];
    const std::int64_t end = order.colour_starts[static_cast<std::size_t>(colour) + 1];
    for (std::int64_t group = start; group < end; group++)
      owner[static_cast<std::size_t>(group)] =
          static_cast<std::int32_t>((group - start) * ranks / (end - start));
  }
  return owner;
}

}  // namespace flowos::solve
