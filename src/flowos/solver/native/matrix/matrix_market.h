#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "matrix/matrix.h"

namespace flowos::solve {

// The text of a Matrix Market file (Boisvert, Pozo, Remington: NISTIR 5935, 1996) of a square
// matrix: coordinate; real, integer or pattern (ones); general or symmetric, of which both
// triangles are made. Rows come sorted, entries that are given several times are added. threads: 0
// is as many as there are. The same for any number of them. Throws MatrixError: "line N: what is
// wrong".
OwnedCsr<std::int32_t> parse_matrix_market(std::string_view text, int threads = 0);

// The same of a file that is not compressed. Throws MatrixError: "PATH: line N: what is wrong".
OwnedCsr<std::int32_t> read_matrix_market(const std::string& path, int threads = 0);

}  // namespace flowos::solve
