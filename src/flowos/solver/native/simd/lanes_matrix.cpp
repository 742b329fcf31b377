#include "simd/lanes_matrix.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/for_each.h"
#include "base/storage.h"
#include "matrix/matrix.h"
#include "ordering/ordering.h"
#include "ordering/permuted_rows.h"
#include "simd/lane_steps.h"

namespace flowos::solve {

// Writes one row after another.
template <class T>
class LanesMatrix<T>::Writer {
 public:
  Writer(Side& lower, Side& upper, Line<T>& inverse, std::int64_t group_places)
      : lower_(lower), upper_(upper), inverse_(inverse), group_places_(group_places) {}

  void skip_group(int steps) {
    for (Side* side : {&lower_, &upper_}) {
      side->begin_group();
      for (int step = 0; step < steps; ++step) side->end_step();
    }
  }

  void write(std::int64_t place, std::span<const Placed> row) {
    const auto lane = static_cast<int>(place % kLanes<T>);
    if (place % group_places_ == 0) begin_group(static_cast<std::int32_t>(place));
    below_.begin_lane(lane);
    above_.begin_lane(lane);
    double diagonal = 0;
    for (const Placed& entry : row) {
      if (entry.place == place) {
        diagonal += entry.value;
      } else {
        (entry.place < place ? below_ : above_).add(entry.place, static_cast<T>(entry.value));
      }
    }
    inverse_[at(place)] = row.empty() ? T(1) : static_cast<T>(1 / diagonal);
    if (lane == kLanes<T> - 1) end_step();
  }

 private:
  void begin_group(std::int32_t place) {
    below_.begin_group(place);
    above_.begin_group(place);
    lower_.begin_group();
    upper_.begin_group();
  }

  void end_step() {
    below_.write(lower_);
    above_.write(upper_);
    lower_.end_step();
    upper_.end_step();
  }

  Side& lower_;
  Side& upper_;
  Line<T>& inverse_;
  std::int64_t group_places_;
  LanesStep<T> below_, above_;
};

// Pages that are not written to cost nothing: so more than what is likely.
template <class T>
void LanesMatrix<T>::Side::reserve(std::int64_t entries, std::int64_t groups, std::int64_t steps) {
  const std::size_t more = 2 * at(entries);
  values.reserve(more);
  codes.reserve(more / kLanes<T>);
  indices.reserve(more);
  starts.reserve(static_cast<std::size_t>(groups * (steps + 1)));
  group_codes.reserve(static_cast<std::size_t>(groups));
}

template <class T>
template <class Index>
void LanesMatrix<T>::write(const Csr<Index>& matrix, const Ordering& ordering, double scale,
                           const Held& held, const double* each, std::int64_t past, Part& part) {
  const std::int64_t entries = matrix.starts[matrix.rows] - matrix.rows;
  for (Side* side : {&part.lower, &part.upper}) {
    side->reserve(entries * (past - part.first_group) / ordering.groups() / 2,
                  past - part.first_group, steps_);
  }
  const auto value_of = [&](std::int64_t row, Index k) {
    return each ? matrix.values[k] * each[row] * each[matrix.columns[k]] : matrix.values[k] * scale;
  };
  Writer writer(part.lower, part.upper, inverse_, ordering.group_places());
  for (std::int64_t first = part.first_group, end = first; first < past; first = end) {
    const bool here = holds(held, first);
    while (end < past && holds(held, end) == here) ++end;
    if (here) {
      visit_rows(
          matrix, ordering, {first, end}, value_of,
          [&](std::int64_t place, std::span<const Placed> row) { writer.write(place, row); });
    } else {
      for (std::int64_t group = first; group < end; ++group) writer.skip_group(steps_);
    }
  }
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
                            int threads, const Held& held, const double* each)
    : steps_(ordering.block_rows) {
  const std::int64_t groups = ordering.groups();
  lower_.resize(static_cast<std::size_t>(groups));
  upper_.resize(static_cast<std::size_t>(groups));
  inverse_.resize(static_cast<std::size_t>(ordering.places()));
  constexpr std::int64_t kPartsEach = 4;  // so that none waits long for the last
  const std::int64_t count = std::clamp<std::int64_t>(groups, 1, kPartsEach * threads);
  parts_.resize(at(count));
  for_parts(count, threads, [&](std::int64_t i) {
    Part& part = parts_[at(i)];
    part.first_group = groups * i / count;
    write(matrix, ordering, scale, held, each, groups * (i + 1) / count, part);
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
                                         const Held&, const double*);
template LanesMatrix<float>::LanesMatrix(const Csr<std::int64_t>&, const Ordering&, double, int,
                                         const Held&, const double*);
template LanesMatrix<double>::LanesMatrix(const Csr<std::int32_t>&, const Ordering&, double, int,
                                          const Held&, const double*);
template LanesMatrix<double>::LanesMatrix(const Csr<std::int64_t>&, const Ordering&, double, int,
                                          const Held&, const double*);

}  // namespace flowos::solve
