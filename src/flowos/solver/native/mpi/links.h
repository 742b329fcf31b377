#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "share.h"

namespace flowos::solve {

// Lines of one colour that go to, and come from, one rank. A line is one step of a group: as many
// values as there are lanes. Both sides have the same lines in the same order, as the matrix is
// symmetric.
struct Link {
  int rank = 0;
  std::vector<std::int32_t> out, in;
};

// Of one colour: which groups are computed first, as others wait for them, and which meanwhile.
struct ColourLinks {
  std::vector<std::int32_t> first, rest;
  std::vector<Link> links;  // in order of rank
};

inline int colour_of(const Ordering& order, std::int64_t group) {
  const auto next = std::upper_bound(order.colour_starts.begin(), order.colour_starts.end(), group);
  return static_cast<int>(next - order.colour_starts.begin()) - 1;
}

// Sorts, and leaves one of those that are equal.
inline void make_set(std::vector<std::int32_t>& numbers) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
}

// What is exchanged of each colour, found from the rank's own rows alone.
inline std::vector<ColourLinks> links_of(const Share& share) {
  const Ordering& order = share.order;
  std::vector<std::map<int, Link>> found(static_cast<std::size_t>(order.colours()));
  std::vector<bool> is_first(share.group.size());
  const auto link = [&](std::int64_t group, int rank) -> Link& {
    return found[static_cast<std::size_t>(colour_of(order, group))][rank];
  };
  for (std::int64_t row = 0; row < share.rows(); row++) {
    const std::int64_t group = share.group_of(row);
    if (!share.is_own(group)) continue;
    const auto begin = static_cast<std::size_t>(share.matrix.starts[static_cast<std::size_t>(row)]);
    const auto end =
        static_cast<std::size_t>(share.matrix.starts[static_cast<std::size_t>(row) + 1]);
    for (std::size_t at = begin; at < end; at++) {
      const std::int32_t to = share.matrix.columns[at];
      const std::int64_t other = share.group_of(to);
      const int rank = share.owner[static_cast<std::size_t>(other)];
      if (rank == share.rank) continue;
      is_first[static_cast<std::size_t>(group)] = true;
      link(group, rank).out.push_back(order.place[static_cast<std::size_t>(row)] / order.lanes);
      link(other, rank).in.push_back(order.place[static_cast<std::size_t>(to)] / order.lanes);
    }
  }
  std::vector<ColourLinks> colours(found.size());
  for (std::size_t colour = 0; colour < found.size(); colour++) {
    for (auto& [rank, lines] : found[colour]) {
      make_set(lines.out);
      make_set(lines.in);
      lines.rank = rank;
      colours[colour].links.push_back(std::move(lines));
    }
    for (auto group = order.colour_starts[colour]; group < order.colour_starts[colour + 1]; group++)
      if (share.is_own(group))
        (is_first[static_cast<std::size_t>(group)] ? colours[colour].first : colours[colour].rest)
            .push_back(static_cast<std::int32_t>(group));
  }
  return colours;
}

}  // namespace flowos::solve
