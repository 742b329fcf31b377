#include "simd/even_lanes.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/for_each.h"
#include "matrix/matrix.h"
#include "ordering/groups.h"
#include "ordering/ordering.h"
#include "ordering/permuted_rows.h"
#include "simd/lane_steps.h"
#include "simd/lanes_matrix.h"

namespace flowos::solve {
namespace {

// Statistics of one LanesStep.
template <class T>
struct StepEntries {
  using Places = std::array<std::int32_t, kLanes<T>>;
  using Values = std::array<T, kLanes<T>>;
  struct Entry {
    bool gathered;
    Places places;
    Values values;

    bool is_even() const {
      return !gathered && values[0] != 0 &&
             std::ranges::all_of(values, [this](T value) { return value == values[0]; });
    }
  };
  std::vector<Entry> all;

  void add(std::int32_t place, const Values& values) {
    all.push_back({.gathered = false, .places = {}, .values = values});
    for (std::int32_t& each : all.back().places) each = place++;
  }
  void add_gathered(const Places& places, const Values& values) {
    all.push_back({.gathered = true, .places = places, .values = values});
  }
};

// Writes one step after another: first what comes first in a row below the diagonal, and above it
// what comes last, so that the step that was computed just before comes last.
template <class T>
class EvenWriter {
 public:
  using Part = typename EvenLanes<T>::Part;
  // Of a step, for each lane; without entries where there is none.
  using Rows = std::array<std::span<const Placed>, kLanes<T>>;

  // zeros: the place of the line of zeros.
  EvenWriter(Part& lower, Part& upper, std::int64_t zeros)
      : lower_(lower), upper_(upper), zeros_(static_cast<std::int32_t>(zeros)) {}

  void begin_group() {
    lower_.begin_group();
    upper_.begin_group();
  }

  void write(std::int64_t first, const Rows& rows) {
    lower_.begin_step();
    upper_.begin_step();
    if (are_alike(first, rows)) {
      write_first(first, rows.front());
    } else {
      write_all(first, rows);
    }
  }

  void end_group() {
    lower_.end_group();
    upper_.end_group();
  }

  void end() {
    lower_.end();
    upper_.end();
  }

 private:
  // Whether what LanesStep makes of them is what the first lane has, for all lanes side by side.
  static bool are_alike(std::int64_t place, const Rows& rows) {
    const std::span<const Placed> row = rows.front();
    for (std::size_t lane = 1; lane < rows.size(); ++lane) {
      if (!same(row, rows[lane], static_cast<std::int32_t>(lane))) return false;
    }
    std::size_t below = 0;
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (row[i].place % kLanes<T> != 0) return false;
      for (std::size_t before = 0; before < i; ++before) {
        if (row[before].place == row[i].place) return false;
      }
      below += row[i].place < place ? 1 : 0;
    }
    return below <= LanesStep<T>::kMax && row.size() - below <= LanesStep<T>::kMax;
  }

  static bool same(std::span<const Placed> row, std::span<const Placed> other, std::int32_t away) {
    if (row.size() != other.size()) return false;
    bool same = true;
    for (std::size_t i = 0; i < row.size(); ++i) {
      same &= other[i].place - away == row[i].place;
      same &= other[i].value == row[i].value;
    }
    return same;
  }

  void write_first(std::int64_t place, std::span<const Placed> row) {
    for (const Placed& entry : row) {
      const auto value = static_cast<T>(entry.value);
      if (entry.place < place && value != 0) lower_.add(entry.place, value);
    }
    for (auto entry = row.rbegin(); entry != row.rend(); ++entry) {
      const auto value = static_cast<T>(entry->value);
      if (entry->place > place && value != 0) upper_.add(entry->place, value);
    }
  }

  void write_all(std::int64_t first, const Rows& rows) {
    for (int lane = 0; lane < kLanes<T>; ++lane) {
      below_.begin_lane(lane);
      above_.begin_lane(lane);
      for (const Placed& entry : rows[at(lane)]) {
        if (entry.place == first + lane) continue;
        (entry.place < first + lane ? below_ : above_)
            .add(entry.place, static_cast<T>(entry.value));
      }
    }
    entries_.all.clear();
    below_.write(entries_);
    for (const auto& entry : entries_.all) write_entry(lower_, entry);
    entries_.all.clear();
    above_.write(entries_);
    for (auto entry = entries_.all.rbegin(); entry != entries_.all.rend(); ++entry) {
      write_entry(upper_, *entry);
    }
  }

  // Once for each value, unless all lanes have the same.
  void write_entry(Part& side, const typename StepEntries<T>::Entry& entry) {
    const auto& [gathered, places, values] = entry;
    if (entry.is_even()) {
      side.add(places[0], values[0]);
      return;
    }
    std::uint32_t done = 0;
    for (std::size_t lane = 0; lane < kLanes<T>; ++lane) {
      if (values[lane] == 0 || (done >> lane & 1U) != 0) continue;
      std::array<std::int32_t, kLanes<T>> of_value;
      for (std::size_t other = 0; other < kLanes<T>; ++other) {
        const bool has = values[other] == values[lane];
        done |= static_cast<std::uint32_t>(has) << other;
        of_value[other] = has ? places[other] : zeros_ + static_cast<std::int32_t>(other);
      }
      side.add_gathered(of_value, values[lane]);
    }
  }

  Part& lower_;
  Part& upper_;
  std::int32_t zeros_;
  LanesStep<T> below_, above_;
  StepEntries<T> entries_;
};

template <class T, class Index>
void write_groups(const Csr<Index>& matrix, const Ordering& ordering, double scale, Groups groups,
                  EvenWriter<T>& writer) {
  const std::int64_t size = ordering.group_places();
  typename EvenWriter<T>::Rows rows;
  const auto value_of = [&](std::int64_t, Index k) { return matrix.values[k] * scale; };
  visit_rows(matrix, ordering, groups, value_of,
             [&](std::int64_t place, std::span<const Placed> row) {
               const auto lane = at(place % kLanes<T>);
               rows[lane] = row;
               if (lane == 0 && place % size == 0) writer.begin_group();
               if (lane + 1 < rows.size()) return;
               writer.write(place + 1 - kLanes<T>, rows);
               if ((place + 1) % size == 0) writer.end_group();
             });
  writer.end();
}

}  // namespace

template <class T>
EvenLanes<T>::EvenLanes(std::vector<Part> parts, int steps) : parts_(std::move(parts)) {
  for (const Part& part : parts_) {
    const std::int32_t* starts = part.starts.data();
    for (const std::size_t code : part.group_codes) {
      groups_.push_back({.starts = starts,
                         .codes = part.codes.data() + code,
                         .indices = part.indices.data(),
                         .values = part.values.data() + code});
      starts += steps + 1;
    }
  }
}

template <class T>
std::int64_t EvenLanes<T>::bytes() const {
  std::size_t sum = 0;
  for (const Part& part : parts_) {
    sum += 4 * (part.starts.size() + part.codes.size() + part.indices.size()) +
           sizeof(T) * part.values.size();
  }
  return static_cast<std::int64_t>(sum);
}

template <class T>
std::int64_t EvenLanes<T>::entries() const {
  std::size_t sum = 0;
  for (const Part& part : parts_) sum += part.codes.size() * kLanes<T>;
  return static_cast<std::int64_t>(sum);
}

// Parts are of a fixed size, of which a thread takes the next.
template <class T, class Index>
EvenMatrix<T> even_matrix(const Csr<Index>& matrix, const Ordering& ordering, double scale,
                          int threads) {
  using Part = typename EvenLanes<T>::Part;
  constexpr std::int64_t kPartRows = 1 << 16;
  const std::int64_t groups = ordering.groups();
  const std::int64_t run = std::max<std::int64_t>(1, kPartRows / ordering.group_places());
  std::vector<Part> lower(at((groups + run - 1) / run)), upper(lower.size());
  for_runs(groups, run, threads, [&](std::int64_t first, std::int64_t past) {
    EvenWriter<T> writer(lower[at(first / run)], upper[at(first / run)], ordering.places());
    write_groups(matrix, ordering, scale, {first, past}, writer);
  });
  return {.lower = EvenLanes<T>(std::move(lower), ordering.block_rows),
          .upper = EvenLanes<T>(std::move(upper), ordering.block_rows)};
}

template class EvenLanes<float>;
template class EvenLanes<double>;
#define FLOWOS_FOR(T, Index) \
  template EvenMatrix<T> even_matrix(const Csr<Index>&, const Ordering&, double, int);
FLOWOS_FOR(float, std::int32_t)
FLOWOS_FOR(float, std::int64_t)
FLOWOS_FOR(double, std::int32_t)
FLOWOS_FOR(double, std::int64_t)
#undef FLOWOS_FOR

}  // namespace flowos::solve
