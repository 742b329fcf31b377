#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "mpi/share.h"
#include "ordering/groups.h"

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

inline int colour_of(const std::vector<std::int64_t>& colour_starts, std::int64_t group) {
  const auto next = std::upper_bound(colour_starts.begin(), colour_starts.end(), group);
  return static_cast<int>(next - colour_starts.begin()) - 1;
}

// Sorts, and leaves one of those that are equal.
inline void make_set(std::vector<std::int32_t>& numbers) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
}

// Finds what is exchanged of each colour, from the rank's own rows alone.
class Linking {
 public:
  explicit Linking(const Share& share)
      : share_(share),
        found_(static_cast<std::size_t>(share.order.colours())),
        awaited_(share.group.size()) {}

  std::vector<ColourLinks> build() {
    for (std::int64_t group = 0; group < share_.order.groups(); group++)
      if (share_.is_own(group))
        each_row(share_.order, {group, group + 1},
                 [&](std::size_t row, std::size_t place) { link_row(group, row, place); });
    std::vector<ColourLinks> colours(found_.size());
    for (std::size_t colour = 0; colour < found_.size(); colour++) {
      sort_groups(colour, colours[colour]);
      for (auto& [rank, link] : found_[colour]) {
        make_set(link.out);
        make_set(link.in);
        link.rank = rank;
        colours[colour].links.push_back(std::move(link));
      }
    }
    return colours;
  }

 private:
  Link& link(std::int64_t group, int rank) {
    return found_[static_cast<std::size_t>(colour_of(share_.order.colour_starts, group))][rank];
  }

  void link_row(std::int64_t group, std::size_t row, std::size_t place) {
    const auto lanes = static_cast<std::size_t>(share_.order.lanes);
    const auto end = static_cast<std::size_t>(share_.matrix.starts[row + 1]);
    for (auto at = static_cast<std::size_t>(share_.matrix.starts[row]); at < end; at++) {
      const std::int32_t to =
          share_.order.place[static_cast<std::size_t>(share_.matrix.columns[at])];
      const std::int64_t other = to / share_.order.group_places();
      if (share_.is_own(other)) continue;
      const int rank = share_.owner[static_cast<std::size_t>(other)];
      awaited_[static_cast<std::size_t>(group)] = true;
      link(group, rank).out.push_back(static_cast<std::int32_t>(place / lanes));
      link(other, rank).in.push_back(to / share_.order.lanes);
    }
  }

  void sort_groups(std::size_t colour, ColourLinks& links) const {
    const auto& starts = share_.order.colour_starts;
    for (auto group = starts[colour]; group < starts[colour + 1]; group++)
      if (share_.is_own(group))
        (awaited_[static_cast<std::size_t>(group)] ? links.first : links.rest)
            .push_back(static_cast<std::int32_t>(group));
  }

  const Share& share_;
  std::vector<std::map<int, Link>> found_;  // of each colour
  std::vector<bool> awaited_;               // of each group: do others read of it?
};

inline std::vector<ColourLinks> links_of(const Share& share) { return Linking(share).build(); }

}  // namespace flowos::solve
