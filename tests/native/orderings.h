#pragma once

// What every ordering must be.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "check.h"
#include "matrix/matrix.h"
#include "ordering/ordering.h"
#include "systems.h"

using flowos::solve::Csr;
using flowos::solve::Ordering;
using flowos::solve::OwnedCsr;

inline OwnedCsr<std::int64_t> widened(const Matrix& matrix) {
  return {.starts = {matrix.starts.begin(), matrix.starts.end()},
          .columns = {matrix.columns.begin(), matrix.columns.end()},
          .values = matrix.values};
}

inline bool same(const Ordering& one, const Ordering& other) {
  return one.colour_starts == other.colour_starts && one.place == other.place &&
         one.row == other.row && one.block_rows == other.block_rows;
}

inline void places_are_a_permutation(const Ordering& ordering) {
  CHECK(ordering.place.size() == at(ordering.rows));
  CHECK(ordering.row.size() == at(ordering.places()));
  for (std::int64_t row = 0; row < ordering.rows; ++row) {
    const std::int32_t place = ordering.place[at(row)];
    CHECK(place >= 0 && place < ordering.places());
    CHECK(ordering.row[at(place)] == row);
  }
  const auto padding = std::count(ordering.row.begin(), ordering.row.end(), -1);
  CHECK(padding + ordering.rows == ordering.places());
}

// Of each group its colour. Each colour has groups.
inline std::vector<int> colours_of(const Ordering& ordering) {
  std::vector<int> colours;
  for (int colour = 0; colour < ordering.colours(); ++colour) {
    CHECK(ordering.colour_starts[at(colour)] < ordering.colour_starts[at(colour + 1)]);
    colours.resize(at(ordering.colour_starts[at(colour + 1)]), colour);
  }
  return colours;
}

inline void a_colour_is_independent(const Matrix& matrix, const Ordering& ordering) {
  const std::vector<int> colours = colours_of(ordering);
  const std::int64_t group_places = std::int64_t{ordering.block_rows} * ordering.lanes;
  const Csr<std::int32_t> all = matrix.view();
  for (std::int64_t row = 0; row < all.rows; ++row) {
    for (std::int32_t k = all.starts[row]; k < all.starts[row + 1]; ++k) {
      const std::int32_t one = ordering.place[at(row)];
      const std::int32_t other = ordering.place[at(all.columns[k])];
      const bool one_block = one / group_places == other / group_places &&
                             one % ordering.lanes == other % ordering.lanes;
      CHECK(one_block || colours[at(one / group_places)] != colours[at(other / group_places)]);
    }
  }
}

inline void is_an_ordering(const Matrix& matrix, const Ordering& ordering) {
  CHECK(ordering.rows == matrix.view().rows);
  places_are_a_permutation(ordering);
  a_colour_is_independent(matrix, ordering);
}
