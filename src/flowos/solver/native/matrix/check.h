#pragma once

#include <cstdint>

#include "matrix/matrix.h"
#include "matrix/properties.h"

namespace flowos::solve {

// What was seen of the matrix. MatrixError unless this is one that conjugate gradients may be tried
// on: rows and columns that are there, finite values, a positive diagonal, and |a_ij - a_ji| <=
// 1e-12 sqrt(a_ii a_jj). Names the first row that is wrong. Entries of one place count together.
template <class Index>
Facts check(const Csr<Index>& matrix, int threads);

inline constexpr const char* kOverwritten =
    "indptr or indices of A were overwritten after the set-up; make another Solver after each "
    "change of A";

// MatrixError if a row has come to be outside of so many entries, or has a column that is not
// there: the arrays are the caller's, and may have been changed since they were checked.
template <class Index>
void check_places(const Csr<Index>& matrix, Index entries);

// MatrixError unless it takes constants to 0, but for rounding: names the first row that does not.
template <class Index>
void check_takes_constants_to_zero(const Csr<Index>& matrix, int threads);

}  // namespace flowos::solve
