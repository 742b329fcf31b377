#pragma once

#include <cstdint>

#include "matrix/matrix.h"

namespace flowos::solve {

// Of all three arrays, bit for bit: another one where a number was changed or moved, but for once
// in 2^30. The same for any number of threads. For what is changed by mistake, not by malice.
template <class Index>
std::uint64_t fingerprint_of(const Csr<Index>& matrix, int threads);

}  // namespace flowos::solve
