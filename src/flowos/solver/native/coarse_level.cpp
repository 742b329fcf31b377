#include "coarse_level.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "at_once.h"
#include "matrix.h"
#include "ordering.h"

namespace flowos::solve {

// Puts the entries of a step together: those of most lanes that lie side by side become one entry
// without indices, the others are gathered.
template <class T>
class LanesMatrix<T>::Writer {
 public:
  Writer(Side& side, std::int64_t steps) : side_(side), steps_(steps) {}

  void begin_group() {
    side_.group_codes.push_back(static_cast<std::int32_t>(side_.codes.size()));
    side_.starts.push_back(0);
  }

  // Lanes come one after another.
  void begin_lane(int lane) {
    lane_ = lane;
    next_ = 0;
  }

  // Only of a lane's own column do entries lie side by side: what another lane of it reads is then
  // its own or of another colour, which no thread writes at that time. Lanes mostly have the same
  // entries in the same order, so that the next one is where it is looked for first.
  void add(std::int32_t place, double value) {
    const auto rounded = static_cast<T>(value);
    if (place % kLanes<T> == lane_) {
      const std::int32_t base = place - lane_;
      if (next_ == entries_ || found_[next_].place != base) next_ = find(base);
      if (next_ < kMost) {
        Found& found = found_[next_++];
        found.values[static_cast<std::size_t>(lane_)] += rounded;
        found.has |= 1U << static_cast<unsigned>(lane_);
        return;
      }
      next_ = 0;
    }
    lists_[static_cast<std::size_t>(lane_)].push_back({place, rounded});
    gathers_ = true;
  }

  void end_step(std::int64_t group) {
    const bool uneven = gathers_ || !all_full();
    if (uneven) count_left();
    for (std::size_t i = 0; i < entries_; ++i) {
      const Found& found = found_[i];
      if (!uneven || (std::popcount(found.has) * 2 >= kLanes<T> && saves_a_gather(found))) {
        side_.codes.push_back(found.place);
        side_.values.insert(side_.values.end(), found.values.begin(), found.values.end());
      } else {
        scatter(found);
      }
    }
    entries_ = 0;
    if (gathers_) write_gathered(static_cast<std::int32_t>(group * steps_ * kLanes<T>));
    side_.starts.push_back(static_cast<std::int32_t>(side_.codes.size()) -
                           side_.group_codes.back());
  }

 private:
  struct Kept {
    std::int32_t place;
    T value;
  };
  struct Found {
    std::int32_t place;  // of the first lane
    std::uint32_t has;   // lanes
    std::array<T, kLanes<T>> values;
  };
  static constexpr std::size_t kMost = 16;  // that are looked through; the rest is gathered

  std::size_t find(std::int32_t base) {
    for (std::size_t i = 0; i < entries_; ++i) {
      if (found_[i].place == base) return i;
    }
    if (entries_ == kMost) return kMost;
    found_[entries_] = {.place = base, .has = 0, .values = {}};
    return entries_++;
  }

  bool all_full() const {
    for (std::size_t i = 0; i < entries_; ++i) {
      if (std::popcount(found_[i].has) != kLanes<T>) return false;
    }
    return true;
  }

  void count_left() {
    for (std::size_t lane = 0; lane < kLanes<T>; ++lane) left_[lane] = lists_[lane].size();
    for (std::size_t i = 0; i < entries_; ++i) count(found_[i], 1);
  }

  void count(const Found& found, std::size_t change) {
    for (std::size_t lane = 0; lane < kLanes<T>; ++lane) {
      if ((found.has >> lane & 1U) != 0) left_[lane] += change;
    }
  }

  // Whether fewer must be gathered without it: not if a lane that has most is without it.
  bool saves_a_gather(const Found& found) {
    const std::size_t most = *std::ranges::max_element(left_);
    for (std::size_t lane = 0; lane < kLanes<T>; ++lane) {
      if (left_[lane] == most && (found.has >> lane & 1U) == 0) return false;
    }
    count(found, std::size_t{0} - 1);
    return true;
  }

  void scatter(const Found& found) {
    for (int lane = 0; lane < kLanes<T>; ++lane) {
      if ((found.has >> static_cast<unsigned>(lane) & 1U) == 0) continue;
      lists_[static_cast<std::size_t>(lane)].push_back(
          {found.place + lane, found.values[static_cast<std::size_t>(lane)]});
      gathers_ = true;
    }
  }

  void write_gathered(std::int32_t group_place) {
    std::size_t most = 0;
    for (const auto& list : lists_) most = std::max(most, list.size());
    for (std::size_t i = 0; i < most; ++i) {
      side_.codes.push_back(~static_cast<std::int32_t>(side_.indices.size()));
      for (std::size_t lane = 0; lane < kLanes<T>; ++lane) {
        const auto& list = lists_[lane];
        const Kept kept =
            i < list.size() ? list[i] : Kept{group_place + static_cast<std::int32_t>(lane), T(0)};
        side_.indices.push_back(kept.place);
        side_.values.push_back(kept.value);
      }
    }
    for (auto& list : lists_) list.clear();
    gathers_ = false;
  }

  Side& side_;
  std::int64_t steps_;
  int lane_ = 0;
  std::size_t next_ = 0, entries_ = 0;  // where it is looked first; how many of found_ there are
  bool gathers_ = false;
  std::array<Found, kMost> found_;
  std::array<std::vector<Kept>, kLanes<T>> lists_;
  std::array<std::size_t, kLanes<T>> left_;  // of each lane the entries that are not written yet
};

// Pages that are not written to cost nothing: so more than what is likely.
template <class T>
void LanesMatrix<T>::Side::reserve(std::int64_t entries, std::int64_t groups, std::int64_t steps) {
  const auto more = static_cast<std::size_t>(entries + entries / 4);
  values.reserve(more);
  codes.reserve(more / kLanes<T>);
  starts.reserve(static_cast<std::size_t>(groups * (steps + 1)));
  group_codes.reserve(static_cast<std::size_t>(groups));
}

template <class T>
template <class Index>
void LanesMatrix<T>::write(const Csr<Index>& matrix, const Ordering& ordering, double scale,
                           const double* each, std::int64_t past, Part& part) {
  const std::int64_t entries = matrix.starts[matrix.rows] - matrix.rows;
  for (Side* side : {&part.lower, &part.upper}) {
    side->reserve(entries * (past - part.first_group) / ordering.groups() / 2,
                  past - part.first_group, steps_);
  }
  Writer lower(part.lower, steps_), upper(part.upper, steps_);
  std::int64_t place = part.first_group * steps_ * kLanes<T>;
  for (std::int64_t group = part.first_group; group < past; ++group) {
    lower.begin_group();
    upper.begin_group();
    for (int step = 0; step < steps_; ++step) {
      for (int lane = 0; lane < kLanes<T>; ++lane, ++place) {
        lower.begin_lane(lane);
        upper.begin_lane(lane);
        write_row(matrix, ordering, scale, each, place, lower, upper);
      }
      lower.end_step(group);
      upper.end_step(group);
    }
  }
}

template <class T>
template <class Index>
void LanesMatrix<T>::write_row(const Csr<Index>& matrix, const Ordering& ordering, double scale,
                               const double* each, std::int64_t place, Writer& lower,
                               Writer& upper) {
  const std::int64_t row = ordering.row[static_cast<std::size_t>(place)];
  T& inverse = inverse_[static_cast<std::size_t>(place)];
  inverse = 1;
  if (row < 0) return;
  double diagonal = 0;
  for (Index k = matrix.starts[row]; k < matrix.starts[row + 1]; ++k) {
    const std::int32_t other = ordering.place[static_cast<std::size_t>(matrix.columns[k])];
    if (other == place) {
      diagonal += matrix.values[k];
    } else {
      const double value =
          each ? matrix.values[k] * each[row] * each[matrix.columns[k]] : matrix.values[k] * scale;
      (other < place ? lower : upper).add(other, value);
    }
  }
  inverse = static_cast<T>(1 / (diagonal * scale));
}

template <class T>
void LanesMatrix<T>::point_to(const Side& side, std::int64_t first_group,
                              std::vector<GroupEntries<T>>& groups) {
  for (std::size_t i = 0; i < side.group_codes.size(); ++i) {
    const std::size_t code = static_cast<std::size_t>(side.group_codes[i]);
    groups[static_cast<std::size_t>(first_group) + i] = {
        .starts = side.starts.data() + i * (static_cast<std::size_t>(steps_) + 1),
        .codes = side.codes.data() + code,
        .indices = side.indices.data(),
        .values = side.values.data() + code * kLanes<T>};
  }
}

template <class T>
template <class Index>
LanesMatrix<T>::LanesMatrix(const Csr<Index>& matrix, const Ordering& ordering, double scale,
                            int threads, const double* each)
    : steps_(ordering.block_rows) {
  const std::int64_t groups = ordering.groups();
  lower_.resize(static_cast<std::size_t>(groups));
  upper_.resize(static_cast<std::size_t>(groups));
  inverse_.resize(static_cast<std::size_t>(ordering.places()));
  const int count = static_cast<int>(std::clamp<std::int64_t>(groups, 1, threads));
  parts_.resize(static_cast<std::size_t>(count));
  at_once(count, [&](int i) {
    Part& part = parts_[static_cast<std::size_t>(i)];
    part.first_group = groups * i / count;
    write(matrix, ordering, scale, each, groups * (i + 1) / count, part);
    point_to(part.lower, part.first_group, lower_);
    point_to(part.upper, part.first_group, upper_);
  });
}

template <class T>
std::int64_t LanesMatrix<T>::Side::bytes() const {
  return static_cast<std::int64_t>(values.size() * sizeof(T) +
                                   (starts.size() + codes.size() + indices.size()) * 4);
}

template <class T>
std::int64_t LanesMatrix<T>::lower_bytes() const {
  std::int64_t sum = 0;
  for (const Part& part : parts_) sum += part.lower.bytes();
  return sum;
}

template <class T>
std::int64_t LanesMatrix<T>::upper_bytes() const {
  std::int64_t sum = 0;
  for (const Part& part : parts_) sum += part.upper.bytes();
  return sum;
}

template <class T>
std::int64_t LanesMatrix<T>::entries() const {
  std::size_t sum = 0;
  for (const Part& part : parts_) sum += part.lower.values.size() + part.upper.values.size();
  return static_cast<std::int64_t>(sum);
}

template class LanesMatrix<float>;
template class LanesMatrix<double>;
template LanesMatrix<float>::LanesMatrix(const Csr<std::int32_t>&, const Ordering&, double, int,
                                         const double*);
template LanesMatrix<float>::LanesMatrix(const Csr<std::int64_t>&, const Ordering&, double, int,
                                         const double*);
template LanesMatrix<double>::LanesMatrix(const Csr<std::int32_t>&, const Ordering&, double, int,
                                          const double*);
template LanesMatrix<double>::LanesMatrix(const Csr<std::int64_t>&, const Ordering&, double, int,
                                          const double*);

}  // namespace flowos::solve
