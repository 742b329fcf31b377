// Any bytes as a Matrix Market file: a valid matrix, the same for any number of threads that read
// it, or an error of one line.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "check.h"
#include "fuzz.h"
#include "matrix/error.h"
#include "matrix/matrix.h"
#include "matrix/matrix_market.h"

using flowos::solve::MatrixError;
using flowos::solve::OwnedCsr;
using flowos::solve::parse_matrix_market;

namespace {

constexpr const char* kBanner = "%%MatrixMarket matrix coordinate ";

}  // namespace

std::vector<std::string> fuzz_seeds() {
  const std::string banner = kBanner;
  const std::string sums = "2 2 5\r\n1 1 4\r\n1 2 1\r\n2 1 1\r\n2 2 3\r\n2 2 1\r\n";
  const std::string half = "% a comment\n\n3 3 5\n1 1 2.5\n2 1 -1\n2 2 2\n3 2 -1e0\n3 3 +2\n";
  return {
      banner + "real symmetric\n" + half,
      banner + "integer general\r\n" + sums,
      banner + "pattern general\n4 4 6\n4 4\n3 3\n2 2\n1 1\n1 4\n4 1",
      "%%matrixmarket MATRIX Coordinate REAL Symmetric\n1 1 1\n\t1  1\t6e-300 \n\n",
      "%%MatrixMarket matrix array real general\n2 2\n1\n0\n0\n1\n",
  };
}

namespace {

struct Read {
  std::optional<OwnedCsr<std::int32_t>> matrix;
  std::string wrong;
};

Read read(const std::string& text, int threads) {
  Read read;
  try {
    read.matrix = parse_matrix_market(text, threads);
  } catch (const MatrixError& error) {
    read.wrong = error.what();
    CHECK(read.wrong.starts_with("line ") && read.wrong.size() < 200);
    for (const char letter : read.wrong) CHECK(letter >= ' ' && letter <= '~');
  }
  return read;
}

void check_sound(const OwnedCsr<std::int32_t>& matrix, std::size_t bytes) {
  const std::size_t rows = matrix.starts.size() - 1;
  CHECK(rows > 0 && rows < bytes && matrix.columns.size() < bytes);
  CHECK(matrix.starts[0] == 0 && matrix.values.size() == matrix.columns.size());
  CHECK(static_cast<std::size_t>(matrix.starts[rows]) == matrix.columns.size());
  for (std::size_t row = 0; row < rows; ++row) {
    CHECK(matrix.starts[row] <= matrix.starts[row + 1]);
    std::int32_t before = -1;
    for (std::int32_t i = matrix.starts[row]; i < matrix.starts[row + 1]; ++i) {
      const std::int32_t column = matrix.columns[static_cast<std::size_t>(i)];
      CHECK(column > before && static_cast<std::size_t>(column) < rows);
      before = column;
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const Read one = read(text, 1);
  const Read three = read(text, 3);
  CHECK(one.wrong == three.wrong && one.matrix.has_value() == three.matrix.has_value());
  if (!one.matrix || !three.matrix) return 0;
  check_sound(*one.matrix, size);
  CHECK(one.matrix->starts == three.matrix->starts);
  CHECK(one.matrix->columns == three.matrix->columns);
  CHECK(one.matrix->values == three.matrix->values);
  return 0;
}
