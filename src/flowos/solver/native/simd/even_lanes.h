#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/storage.h"
#include "matrix/matrix.h"
#include "ordering/ordering.h"
#include "simd/lanes_matrix.h"

namespace flowos::solve {

// So many codes can be read before the first and after the last one.
constexpr int kCodesAround = 32;

// The entries of one side of the diagonal in lanes, where so few values occur that all lanes of an
// entry can have the same one, which is stored once. Lanes without it take their factor from the
// line of zeros that comes after the last place.
template <class T>
class EvenLanes {
 public:
  // Some groups, one after another.
  struct Part {
    Line<std::int32_t> starts, codes, indices;
    Line<T> values;                        // one of each entry
    std::vector<std::size_t> group_codes;  // of each group its first

    Part() : codes(kCodesAround, 0), values(kCodesAround, T(0)) {}
    // So much is taken at once, as memory that is moved to is new each time.
    void reserve(std::int64_t groups, std::int64_t steps, std::int64_t entries_each) {
      starts.reserve(static_cast<std::size_t>(groups * (steps + 1)));
      codes.reserve(static_cast<std::size_t>(groups * steps * entries_each + 2L * kCodesAround));
      values.reserve(codes.capacity());
    }
    void begin_group() { group_codes.push_back(codes.size()); }
    void begin_step() {
      starts.push_back(static_cast<std::int32_t>(codes.size() - group_codes.back()));
    }
    void end_group() { begin_step(); }
    void end() { codes.insert(codes.end(), kCodesAround, 0); }
    void add(std::int32_t code, T value) {
      codes.push_back(code);
      values.push_back(value);
    }
    // What a lane has no entry for is to be in the line of zeros.
    void add_gathered(const std::array<std::int32_t, kLanes<T>>& places, T value) {
      add(~static_cast<std::int32_t>(indices.size()), value);
      indices.insert(indices.end(), places.begin(), places.end());
    }
  };

  EvenLanes() = default;
  // All groups, in order.
  EvenLanes(std::vector<Part> parts, int steps);

  const GroupEntries<T>* groups() const { return groups_.data(); }
  std::int64_t bytes() const;
  std::int64_t entries() const;  // with those that are 0

 private:
  std::vector<Part> parts_;
  std::vector<GroupEntries<T>> groups_;
};

// A matrix in such lanes.
template <class T>
struct EvenMatrix {
  EvenLanes<T> lower, upper;
};

// Of the matrix times `scale`.
template <class T, class Index>
EvenMatrix<T> even_matrix(const Csr<Index>& matrix, const Ordering& ordering, double scale,
                          int threads);

}  // namespace flowos::solve
