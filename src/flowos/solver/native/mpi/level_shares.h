#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "mpi/level_owners.h"
#include "mpi/partition.h"
#include "multigrid/hierarchy.h"
#include "simd/lanes_matrix.h"

namespace flowos::solve {

// What one rank does on a level of a hierarchy.
struct LevelShare {
  std::vector<std::uint8_t> read;  // of each line (step of a group) of the result whether it is
  // Where aggregates lie anywhere: those whose rows are added up here, and of which lines; and
  // those whose correction is read here.
  std::vector<std::int32_t> added, spread;
  std::vector<std::uint8_t> added_lines;
  // Where every rank computes all of the next level, but not of this: of each rank the places of
  // that level's right-hand side that it makes.
  std::vector<std::vector<std::int32_t>> coarse_places;
};

// Finds it for all levels.
template <class T>
class LevelSharing {
 public:
  LevelSharing(const Hierarchy<T>& hierarchy, const LevelOwners& owners, int rank, int ranks)
      : hierarchy_(hierarchy),
        owners_(owners),
        rank_(rank),
        ranks_(ranks),
        shares_(hierarchy.levels.size()) {}

  std::vector<LevelShare> build() {
    for (std::size_t l = 0; l < shares_.size(); l++) {
      shares_[l].read.resize(lines_of(level(l)));
      shares_[l].added_lines.resize(lines_of(level(l)));
    }
    for (std::size_t l = 0; l < shares_.size(); l++)
      if (is_shared(l))
        share(l);
      else
        take_all(l);
    return std::move(shares_);
  }

 private:
  const Level<T>& level(std::size_t l) const { return hierarchy_.levels[l]; }
  bool is_shared(std::size_t l) const { return l < shares_.size() && !owners_.of(l).empty(); }
  static std::size_t lines_of(const Level<T>& level) {
    return static_cast<std::size_t>(level.groups()) * static_cast<std::size_t>(level.view().steps);
  }

  // Groups that are not held have no entries.
  void share(std::size_t l) {
    const Transfer& down = level(l).down;
    const LevelView<T> view = level(l).view();
    for (std::int64_t group = 0; group < level(l).groups(); group++) {
      mark(view.lower[group], view.steps, shares_[l].read);
      mark(view.upper[group], view.steps, shares_[l].read);
      if (is_shared(l + 1) && down.coarse_steps > 0)
        mark(view.spread[group], view.steps, shares_[l + 1].read);
    }
    if (down.coarse_steps == 0) share_aggregates(l);
    if (!is_shared(l + 1)) hand_down(l);
  }

  std::int32_t first_owner(std::size_t l, std::size_t aggregate) const {
    return LevelOwners::of_aggregate(owners_.of(l), group_places(l), level(l).down, aggregate);
  }
  std::int64_t group_places(std::size_t l) const {
    return std::int64_t{level(l).view().steps} * kLanes<T>;
  }
  std::int32_t owner_of_aggregate(std::size_t l, std::size_t aggregate) const {
    if (!is_shared(l + 1)) return first_owner(l, aggregate);
    const std::int64_t place = level(l).down.coarse_place[aggregate];
    return owners_.of(l + 1)[static_cast<std::size_t>(place / group_places(l + 1))];
  }

  // A correction is read where the lower entries take their factors from.
  void share_aggregates(std::size_t l) {
    const Transfer& down = level(l).down;
    const LevelView<T> view = level(l).view();
    std::vector<std::uint8_t> below(lines_of(level(l)));
    for (std::int64_t group = 0; group < level(l).groups(); group++)
      mark(view.lower[group], view.steps, below);
    for (std::size_t i = 0; i < down.coarse_place.size(); i++) {
      const bool added = owner_of_aggregate(l, i) == rank_;
      bool spread = false;
      for (std::int32_t k = down.starts[i]; k < down.starts[i + 1]; k++) {
        const auto line =
            static_cast<std::size_t>(down.places[static_cast<std::size_t>(k)] / kLanes<T>);
        if (added) shares_[l].added_lines[line] = 1;
        spread = spread || below[line];
      }
      if (added) shares_[l].added.push_back(static_cast<std::int32_t>(i));
      if (!spread) continue;
      shares_[l].spread.push_back(static_cast<std::int32_t>(i));
      if (is_shared(l + 1))
        shares_[l + 1].read[static_cast<std::size_t>(down.coarse_place[i] / kLanes<T>)] = 1;
    }
  }

  void hand_down(std::size_t l) {
    const Transfer& down = level(l).down;
    const std::int32_t each = down.coarse_steps * kLanes<T>;
    std::vector<std::vector<std::int32_t>>& places = shares_[l].coarse_places;
    places.resize(static_cast<std::size_t>(ranks_));
    for (std::int32_t group = 0; each > 0 && group < level(l).groups(); group++) {
      const auto owner = static_cast<std::size_t>(owners_.of(l)[static_cast<std::size_t>(group)]);
      for (std::int32_t place = group * each; place < (group + 1) * each; place++)
        places[owner].push_back(place);
    }
    for (std::size_t i = 0; i < down.coarse_place.size(); i++)
      places[static_cast<std::size_t>(first_owner(l, i))].push_back(down.coarse_place[i]);
  }

  void take_all(std::size_t l) {
    LevelShare& share = shares_[l];
    share.added.resize(level(l).down.coarse_place.size());
    std::iota(share.added.begin(), share.added.end(), 0);
    share.spread = share.added;
  }

  // Those that the entries take factors from; not the line of zeros after the last.
  static void mark(const GroupEntries<T>& entries, int steps, std::vector<std::uint8_t>& lines) {
    const auto mark_place = [&](std::int32_t place) {
      const auto line = static_cast<std::size_t>(place / kLanes<T>);
      if (line < lines.size()) lines[line] = 1;
    };
    for (std::int32_t e = 0; e < entries.starts[steps]; e++) {
      const std::int32_t code = entries.codes[e];
      for (std::int32_t lane = 0; lane < kLanes<T>; lane++)
        mark_place(code >= 0 ? code + lane : entries.indices[~code + lane]);
    }
  }

  const Hierarchy<T>& hierarchy_;
  const LevelOwners& owners_;
  int rank_, ranks_;
  std::vector<LevelShare> shares_;
};

}  // namespace flowos::solve
