#pragma once

#include "matrix.h"

namespace flowos::solve {

// How far the diagonal outweighs the rest of its rows.
struct Dominance {
  double greatest = 0;     // of the diagonal
  bool everywhere = true;  // in no row are the others together larger
  double share = 0;        // mean of (others / diagonal)
};

template <class Index>
Dominance dominance_of(const Csr<Index>& matrix, int threads);

}  // namespace flowos::solve
