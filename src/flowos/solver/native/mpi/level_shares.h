#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "../coarse_kernels.h"
#include "../coarse_level.h"
#include "../coarse_levels.h"
#include "partition.h"

namespace flowos::solve {

// What one rank does on a level of a hierarchy.
struct LevelShare {
  // Of each group the rank that computes it; none where every rank computes all of the level, as
  // that takes less time than to hand on what others need.
  Owners owners;
  std::vector<std::uint8_t> read;  // of each line (step of a group) of the result
  // Where aggregates lie anywhere: those whose rows are added up here, and of which lines; and
  // those whose correction is read here.
  std::vector<std::int32_t> added, spread;
  std::vector<std::uint8_t> added_lines;
  // Where every rank computes all of the next level: of each rank the places of that level's
  // right-hand side that it makes.
  std::vector<std::vector<std::int32_t>> made;

  bool is_shared() const { return !owners.empty(); }
};

// How the levels of a hierarchy are shared out, given how the finest is. The same on all ranks.
template <class T>
class LevelSharing {
 public:
  LevelSharing(const Hierarchy<T>& hierarchy, const Owners& owners, int rank, int ranks)
      : hierarchy_(hierarchy), rank_(rank), ranks_(ranks), shares_(hierarchy.levels.size()) {
    shares_[0].owners = owners;
  }

  std::vector<LevelShare> made() {
    for (std::size_t l = 0; l < shares_.size(); l++) {
      shares_[l].read.resize(lines_of(level(l)));
      shares_[l].added_lines.resize(lines_of(level(l)));
    }
    for (std::size_t l = 0; l < shares_.size() && shares_[l].is_shared(); l++) share(l);
    for (std::size_t l = 0; l < shares_.size(); l++)
      if (!shares_[l].is_shared()) take_all(l);
    return std::move(shares_);
  }

 private:
  // Of a colour, on each rank: to compute as many takes as long as to hand some on.
  static constexpr std::size_t kLeastLines = 256;

  const Level<T>& level(std::size_t l) const { return hierarchy_.levels[l]; }
  static std::size_t lines_of(const Level<T>& level) {
    return static_cast<std::size_t>(level.groups()) * static_cast<std::size_t>(level.view().steps);
  }
  static std::int32_t group_of(const Level<T>& level, std::int32_t place) {
    return place / kLanes<T> / level.view().steps;
  }
  bool is_own(std::size_t l, std::int32_t group) const {
    return shares_[l].owners[static_cast<std::size_t>(group)] == rank_;
  }

  void share(std::size_t l) {
    const Transfer& down = level(l).down;
    const bool next = l + 1 < shares_.size() && is_worth_sharing(level(l + 1));
    if (next) shares_[l + 1].owners = down.coarse_steps > 0 ? shares_[l].owners : most_of(l);
    const LevelView<T> view = level(l).view();
    for (std::int32_t group = 0; group < level(l).groups(); group++) {
      if (!is_own(l, group)) continue;
      mark(view.lower[group], view.steps, shares_[l].read);
      mark(view.upper[group], view.steps, shares_[l].read);
      if (next && down.coarse_steps > 0) mark(view.spread[group], view.steps, shares_[l + 1].read);
    }
    if (down.coarse_steps == 0) share_aggregates(l, next);
    if (!next) hand_down(l);
  }

  bool is_worth_sharing(const Level<T>& level) const {
    const std::size_t colours = level.colour_starts.size() - 1;
    return lines_of(level) >= kLeastLines * colours * static_cast<std::size_t>(ranks_);
  }

  // Of each group of the next level who has most of the aggregates in it.
  Owners most_of(std::size_t l) const {
    const Level<T>& coarse = level(l + 1);
    const Transfer& down = level(l).down;
    const auto ranks = static_cast<std::size_t>(ranks_);
    std::vector<std::int32_t> counts(static_cast<std::size_t>(coarse.groups()) * ranks);
    for (std::size_t i = 0; i < down.coarse_place.size(); i++) {
      const auto group = static_cast<std::size_t>(group_of(coarse, down.coarse_place[i]));
      counts[group * ranks + static_cast<std::size_t>(first_owner(l, i))]++;
    }
    Owners owners(static_cast<std::size_t>(coarse.groups()));
    for (std::size_t group = 0; group < owners.size(); group++) {
      const auto its = counts.begin() + static_cast<std::ptrdiff_t>(group * ranks);
      owners[group] = static_cast<std::int32_t>(std::max_element(its, its + ranks_) - its);
    }
    return owners;
  }

  // Who has the first of an aggregate's rows.
  std::int32_t first_owner(std::size_t l, std::size_t aggregate) const {
    const Transfer& down = level(l).down;
    const std::int32_t place = down.places[static_cast<std::size_t>(down.starts[aggregate])];
    return shares_[l].owners[static_cast<std::size_t>(group_of(level(l), place))];
  }

  std::int32_t owner_of_aggregate(std::size_t l, std::size_t aggregate) const {
    if (l + 1 == shares_.size() || !shares_[l + 1].is_shared()) return first_owner(l, aggregate);
    const std::int32_t place = level(l).down.coarse_place[aggregate];
    return shares_[l + 1].owners[static_cast<std::size_t>(group_of(level(l + 1), place))];
  }

  // A correction is read where the lower entries take their factors from.
  void share_aggregates(std::size_t l, bool next) {
    const Transfer& down = level(l).down;
    const LevelView<T> view = level(l).view();
    std::vector<std::uint8_t> below(lines_of(level(l)));
    for (std::int32_t group = 0; group < level(l).groups(); group++)
      if (is_own(l, group)) mark(view.lower[group], view.steps, below);
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
      if (next) shares_[l + 1].read[static_cast<std::size_t>(down.coarse_place[i] / kLanes<T>)] = 1;
    }
  }

  void hand_down(std::size_t l) {
    const Transfer& down = level(l).down;
    const std::int32_t each = down.coarse_steps * kLanes<T>;
    shares_[l].made.resize(static_cast<std::size_t>(ranks_));
    const auto of_rank = [&](std::int32_t rank) -> std::vector<std::int32_t>& {
      return shares_[l].made[static_cast<std::size_t>(rank)];
    };
    for (std::int32_t group = 0; each > 0 && group < level(l).groups(); group++)
      for (std::int32_t place = group * each; place < (group + 1) * each; place++)
        of_rank(shares_[l].owners[static_cast<std::size_t>(group)]).push_back(place);
    for (std::size_t i = 0; i < down.coarse_place.size(); i++)
      of_rank(first_owner(l, i)).push_back(down.coarse_place[i]);
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
  int rank_, ranks_;
  std::vector<LevelShare> shares_;
};

}  // namespace flowos::solve
