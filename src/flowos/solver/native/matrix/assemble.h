#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "matrix/matrix.h"

namespace flowos::solve {

struct Entry {
  std::int32_t row;
  std::int32_t column;
  double value;
};

enum class Mirror { no, across_diagonal };

// The matrix with these entries, and their mirror images where requested. Its rows are sorted;
// entries of one place are added in the order in which they come, so that images are equal bit for
// bit. Throws MatrixError if 32 bits cannot count the entries.
OwnedCsr<std::int32_t> assemble(std::int64_t rows, std::span<const std::vector<Entry>> lists,
                                Mirror mirror, int threads);

// The matrix whose lower triangle this is; what lies above the diagonal is not used.
// threads: 0 is as many as there are. Throws MatrixError for an invalid column or start, or an
// upper triangle.
template <class Index>
OwnedCsr<std::int32_t> from_lower(const Csr<Index>& matrix, int threads = 0);

// (A + A') / 2
template <class Index>
OwnedCsr<std::int32_t> symmetrized(const Csr<Index>& matrix, int threads = 0);

}  // namespace flowos::solve
