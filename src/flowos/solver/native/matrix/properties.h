#pragma once

#include <cstdint>
#include <vector>

#include "matrix/matrix.h"

namespace flowos::solve {

// How much the rows of a matrix differ.
struct Evenness {
  double min_diagonal = 0, max_diagonal = 0;
  bool negative = true;        // no entry off the diagonal is positive
  std::vector<double> values;  // off the diagonal, where they are few; else none

  // The matrix has few distinct values, as of constant coefficients on a grid.
  bool is_even() const { return min_diagonal == max_diagonal && !values.empty(); }
  bool operator==(const Evenness&) const = default;
};

// How far the diagonal outweighs the rest of its rows.
struct Dominance {
  double max_diagonal = 0;
  bool everywhere = true;  // in no row are the others together larger
  double share = 0;        // mean of (others / diagonal)

  bool operator==(const Dominance&) const = default;
};

// Properties of a matrix that one pass over its entries finds.
struct Facts {
  // The first row that is wrong by itself, or -1: its start, a column that is not there, a value
  // that is not finite, or no positive diagonal. What follows holds only if there is none.
  std::int64_t bad_row = -1;
  // Each entry has a mirror image of the same bits. Equal mirror images may be taken for unequal,
  // as they are in several parts; different ones pass for equal once in 2^60.
  bool mirrored = true;
  Evenness evenness;
  Dominance dominance;
  std::vector<std::uint8_t> repeats;  // see Csr

  bool operator==(const Facts&) const = default;
};

template <class Index>
Facts facts_of(const Csr<Index>& matrix, int threads);

}  // namespace flowos::solve
