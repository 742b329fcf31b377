#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/storage.h"
#include "matrix/matrix.h"
#include "ordering/ordering.h"

namespace flowos::solve {

template <class T>
constexpr int kLanes = 64 / sizeof(T);

// The entries of one group on one side of the diagonal, by step, each for all lanes. An entry's
// code is the place that the first lane takes its factor from, if the others take theirs from the
// places after it; else ~code is where in `indices` the places stand. What a lane has no entry for
// is 0.
template <class T>
struct GroupEntries {
  const std::int32_t* starts = nullptr;  // of each step its first entry; then their number
  const std::int32_t* codes = nullptr;
  const std::int32_t* indices = nullptr;
  const T* values = nullptr;  // lanes of each entry
};

// What the sweeps over a level read.
template <class T>
struct LevelView {
  int steps = 0;  // of a block
  const GroupEntries<T>* lower = nullptr;
  const GroupEntries<T>* upper = nullptr;
  const T* inverse = nullptr;  // of the diagonal; of padding what leaves zeros zeros
  bool alike = false;          // all of the diagonal: one line of `inverse` serves every place
  // The lower entries times what spreads a correction over the rows: as they are, but that they
  // take their factor from where the correction has it.
  const GroupEntries<T>* spread = nullptr;
};

// Which groups of an ordering are computed by this process: not 0. Empty: all.
using Held = std::vector<std::uint8_t>;

inline bool holds(const Held& held, std::int64_t group) {
  return held.empty() || held[static_cast<std::size_t>(group)] != 0;
}

// A matrix, times `scale`, or times what `each` has for the row and the column
// of an entry where that is given, in the lanes of its ordering. Groups that are not held have no
// entries.
template <class T>
class LanesMatrix {
 public:
  template <class Index>
  LanesMatrix(const Csr<Index>& matrix, const Ordering& ordering, double scale, int threads,
              const Held& held = {}, const double* each = nullptr);

  LevelView<T> view() const {
    return {.steps = steps_,
            .lower = lower_.data(),
            .upper = upper_.data(),
            .inverse = inverse_.data()};
  }
  // What a sweep over one side of the diagonal reads of the matrix.
  std::int64_t lower_bytes() const;
  std::int64_t upper_bytes() const;
  std::int64_t entries() const;  // that are stored, with those that are 0

 private:
  struct Side {
    Line<std::int32_t> starts, codes, indices;
    Line<T> values;
    std::vector<std::int32_t> group_codes;  // of each group its first

    std::int64_t bytes() const;
    void reserve(std::int64_t entries, std::int64_t groups, std::int64_t steps);
    void begin_group() {
      group_codes.push_back(static_cast<std::int32_t>(codes.size()));
      starts.push_back(0);
    }
    void end_step() {
      starts.push_back(static_cast<std::int32_t>(codes.size()) - group_codes.back());
    }
    void add(std::int32_t place, const std::array<T, kLanes<T>>& of_lanes) {
      codes.push_back(place);
      values.insert(values.end(), of_lanes.begin(), of_lanes.end());
    }
    void add_gathered(const std::array<std::int32_t, kLanes<T>>& places,
                      const std::array<T, kLanes<T>>& of_lanes) {
      add(~static_cast<std::int32_t>(indices.size()), of_lanes);
      indices.insert(indices.end(), places.begin(), places.end());
    }
  };
  struct Part {  // some groups, one after another
    std::int64_t first_group = 0;
    Side lower, upper;
  };
  class Writer;

  template <class Index>
  void write(const Csr<Index>& matrix, const Ordering& ordering, double scale, const Held& held,
             const double* each, std::int64_t past, Part& part);
  void point_to(const Side& side, std::int64_t first_group, std::vector<GroupEntries<T>>& groups);

  int steps_;
  std::vector<Part> parts_;
  std::vector<GroupEntries<T>> lower_, upper_;  // of each group
  Line<T> inverse_;
};

}  // namespace flowos::solve
