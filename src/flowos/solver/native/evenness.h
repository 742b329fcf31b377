#pragma once

#include <vector>

#include "matrix.h"

namespace flowos::solve {

// How much the rows of a matrix differ.
struct Evenness {
  double least = 0, greatest = 0;  // of the diagonal
  bool negative = true;            // no entry off the diagonal is positive
  std::vector<double> values;      // off the diagonal, where they are few; else none

  // All of it can be told by a few numbers, as of constant coefficients on a grid.
  bool is_even() const { return least == greatest && !values.empty(); }
};

template <class Index>
Evenness evenness_of(const Csr<Index>& matrix, int threads);

}  // namespace flowos::solve
