#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "simd/lanes_matrix.h"

namespace flowos::solve {

// What is gathered for a step: first an entry of each lane, then a second one, and so on.
template <class T>
class Gathered {
 public:
  // Lanes that have no entry get 0 times what is at their place of the step at `place`.
  void begin_group(std::int32_t place) {
    for (std::int32_t& none : none_) none = place++;
  }

  bool any() const { return max_entries_ > 0; }
  std::int32_t count(std::size_t lane) const { return counts_[lane]; }

  void add(std::size_t lane, std::int32_t place, T value) {
    const auto entry = static_cast<std::size_t>(counts_[lane]++);
    if (entry == max_entries_) add_entry();
    places_[entry][lane] = place;
    values_[entry][lane] = value;
  }

  // Calls side.add_gathered(places, values), and begins anew.
  template <class Side>
  void write(Side& side) {
    for (std::size_t i = 0; i < max_entries_; ++i) side.add_gathered(places_[i], values_[i]);
    counts_ = {};
    max_entries_ = 0;
  }

 private:
  void add_entry() {
    if (max_entries_ == places_.size()) {
      places_.emplace_back();
      values_.emplace_back();
    }
    places_[max_entries_] = none_;
    values_[max_entries_++] = {};
  }

  std::array<std::int32_t, kLanes<T>> counts_ = {};
  std::size_t max_entries_ = 0;  // that a lane has
  std::array<std::int32_t, kLanes<T>> none_ = {};
  std::vector<std::array<std::int32_t, kLanes<T>>> places_;  // of each entry
  std::vector<std::array<T, kLanes<T>>> values_;
};

// Puts the entries of a step on one side of the diagonal together: those of most lanes that lie
// side by side become one entry without indices, the others are gathered.
template <class T>
class LanesStep {
 public:
  static constexpr std::size_t kMax = 16;  // that are remembered; the rest is gathered

  void begin_group(std::int32_t place) { gathered_.begin_group(place); }

  // Lanes come one after another.
  void begin_lane(int lane) { lane_ = lane; }

  // Only of a lane's own column do entries lie side by side: what another lane of it reads is then
  // its own or of another colour, which no thread writes at that time.
  void add(std::int32_t place, T value) {
    if (place % kLanes<T> == lane_) {
      const std::size_t entry = find(place - lane_);
      if (entry < kMax) {
        Found& found = found_[entry];
        const std::uint32_t bit = 1U << static_cast<unsigned>(lane_);
        found.values[static_cast<std::size_t>(lane_)] += value;
        found.lanes += (found.has & bit) == 0 ? 1 : 0;
        found.has |= bit;
        return;
      }
    }
    gathered_.add(static_cast<std::size_t>(lane_), place, value);
  }

  // Calls side.add(place, values), where `place` is the first lane's, and
  // side.add_gathered(places, values). Begins anew.
  template <class Side>
  void write(Side& side) {
    const bool uneven = gathered_.any() || !all_full();
    if (uneven && std::any_of(found_.begin(), found_.begin() + entries_, in_most_lanes)) {
      count_left();
    }
    for (std::size_t i = 0; i < entries_; ++i) {
      const Found& found = found_[i];
      if (!uneven || (in_most_lanes(found) && saves_a_gather(found))) {
        side.add(found.place, found.values);
      } else {
        gather(found);
      }
    }
    std::fill_n(next_places_.begin(), entries_, 0);
    entries_ = 0;
    gathered_.write(side);
  }

 private:
  struct Found {
    std::int32_t place;  // of the first lane
    std::uint32_t has;   // lanes
    int lanes;           // their number
    std::array<T, kLanes<T>> values;
  };

  // kMax: it has no entry. All are compared, as that takes no guess which is the one.
  std::size_t find(std::int32_t base) {
    std::uint32_t number = 0;  // from 1
    for (std::uint32_t i = 0; i < kMax; ++i) number |= next_places_[i] == base + 1 ? i + 1 : 0;
    if (number != 0) return number - 1;
    if (entries_ == kMax) return kMax;
    next_places_[entries_] = base + 1;
    found_[entries_] = {.place = base, .has = 0, .lanes = 0, .values = {}};
    return entries_++;
  }

  static bool in_most_lanes(const Found& found) { return 2 * found.lanes >= kLanes<T>; }

  bool all_full() const {
    return std::all_of(found_.begin(), found_.begin() + entries_,
                       [](const Found& found) { return found.lanes == kLanes<T>; });
  }

  void count_left() {
    for (std::size_t lane = 0; lane < kLanes<T>; ++lane) left_[lane] = gathered_.count(lane);
    for (std::size_t i = 0; i < entries_; ++i) count(found_[i], 1);
  }

  void count(const Found& found, std::int32_t change) {
    for (std::size_t lane = 0; lane < kLanes<T>; ++lane) {
      left_[lane] += change * static_cast<std::int32_t>(found.has >> lane & 1U);
    }
  }

  // Whether fewer must be gathered without it: not if a lane that has most is without it.
  bool saves_a_gather(const Found& found) {
    const std::int32_t most = *std::ranges::max_element(left_);
    for (std::size_t lane = 0; lane < kLanes<T>; ++lane) {
      if (left_[lane] == most && (found.has >> lane & 1U) == 0) return false;
    }
    count(found, -1);
    return true;
  }

  void gather(const Found& found) {
    for (std::uint32_t has = found.has; has != 0; has &= has - 1) {
      const auto lane = static_cast<std::size_t>(std::countr_zero(has));
      gathered_.add(lane, found.place + static_cast<std::int32_t>(lane), found.values[lane]);
    }
  }

  int lane_ = 0;
  std::size_t entries_ = 0;  // how many of found_ there are
  std::array<Found, kMax> found_;
  std::array<std::int32_t, kMax> next_places_ = {};  // after theirs; 0: there is no such entry
  Gathered<T> gathered_;
  std::array<std::int32_t, kLanes<T>> left_ = {};  // of each lane the entries that are not written
};

}  // namespace flowos::solve
