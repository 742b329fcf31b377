#pragma once

#include <cstdint>
#include <vector>

#include "matrix.h"
#include "ordering.h"

namespace flowos::solve {

// Of each row the pivot of an incomplete Cholesky factor that keeps the entries of A off the
// diagonal: where no two neighbours of a row are neighbours this is IC(0).
struct Pivots {
  std::vector<double> values;
  std::vector<double> middle;  // the diagonal over its pivot, less 2
  double shift = 0;  // diagonal * (1 + shift) was factored (Manteuffel: Math. Comp. 34, 1980)
};

// relax: the share of the fill dropped that is taken off the diagonal (Axelsson and Lindskog:
// Numerische Mathematik 48, 1986). MatrixError: not even with a diagonal twice as large are all
// pivots positive.
template <class Index>
Pivots pivots_of(const Csr<Index>& matrix, const Ordering& ordering, double relax, int threads);

}  // namespace flowos::solve
