// Generated matrices have their stated properties, and are the same on every machine.

#include "matrix/generate.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "check.h"
#include "matrix/error.h"
#include "matrix/grid.h"
#include "matrix/matrix.h"

namespace {

using flowos::solve::Csr;
using flowos::solve::g3like;
using flowos::solve::Grid;
using flowos::solve::kG3likeRows;
using flowos::solve::MatrixError;
using flowos::solve::OwnedCsr;
using flowos::solve::poisson;
using flowos::solve::poisson_rows;
using flowos::solve::power_grid;

using Matrix = OwnedCsr<std::int32_t>;

bool same(const Matrix& one, const Matrix& other) {
  return one.starts == other.starts && one.columns == other.columns && one.values == other.values;
}

// a_ij where it is stored, else 0.
double entry(const Matrix& matrix, std::int64_t row, std::int64_t column) {
  const Csr<std::int32_t> all = matrix.view();
  const std::int32_t* begin = all.columns + all.starts[row];
  const std::int32_t* end = all.columns + all.starts[row + 1];
  const std::int32_t* found = std::lower_bound(begin, end, column);
  return found != end && *found == column ? all.values[found - all.columns] : 0;
}

void a_poisson_matrix_is_its_stencil(const Grid& grid) {
  const auto [nz, ny, nx] = grid.cells;
  const std::int64_t cells = nz * ny * nx;
  const Matrix matrix = poisson(grid, 2);
  CHECK(matrix.view().rows == cells);
  std::size_t entries = 0;
  for (std::int64_t i = 0; i < cells; ++i) {
    for (std::int64_t j = 0; j < cells; ++j) {
      const std::int64_t steps = std::abs(i % nx - j % nx) + std::abs(i / nx % ny - j / nx % ny) +
                                 std::abs(i / nx / ny - j / nx / ny);
      CHECK(entry(matrix, i, j) == (steps == 0 ? 6.0 : steps == 1 ? -1.0 : 0.0));
      entries += steps <= 1 ? 1 : 0;
    }
  }
  CHECK(matrix.values.size() == entries);
  CHECK(matrix.columns.size() == entries);
}

void ranks_generate_their_rows(const Grid& grid) {
  const Matrix whole = poisson(grid, 1);
  const std::int64_t cells = whole.view().rows;
  for (std::int64_t parts = 1; parts <= 7; ++parts) {
    std::vector<std::int32_t> columns;
    for (std::int64_t part = 0; part < parts; ++part) {
      const std::int64_t first = cells * part / parts;
      const std::int64_t end = cells * (part + 1) / parts;
      const Matrix rows = poisson_rows(grid, first, end, 2);
      CHECK(rows.view().rows == end - first);
      for (std::int64_t row = first; row <= end; ++row) {
        const auto before = static_cast<std::size_t>(row - first);
        CHECK(rows.starts[before] == whole.view().starts[row] - whole.view().starts[first]);
      }
      columns.insert(columns.end(), rows.columns.begin(), rows.columns.end());
    }
    CHECK(columns == whole.columns);
  }
}

void a_grid_too_large_is_refused() {
  try {
    poisson(Grid{{2048, 2048, 2048}});
  } catch (const MatrixError&) {
    return;
  }
  CHECK(false);
}

// FNV-1a over the numbers' bits.
std::uint64_t hash_of(const Matrix& matrix) {
  std::uint64_t hash = 0xcbf29ce484222325;
  const auto add = [&hash](std::uint64_t value) { hash = (hash ^ value) * 0x100000001b3; };
  for (const std::int32_t column : matrix.columns) add(static_cast<std::uint64_t>(column));
  for (const double value : matrix.values) add(std::bit_cast<std::uint64_t>(value));
  return hash;
}

// Of a row of conductances that is sorted and has its images in others: what is left of it on the
// diagonal.
double ground_of(const Matrix& matrix, std::int64_t row) {
  const Csr<std::int32_t> all = matrix.view();
  double sum = 0;
  double size = 0;
  for (std::int32_t k = all.starts[row]; k < all.starts[row + 1]; ++k) {
    const std::int32_t column = all.columns[k];
    const double value = all.values[k];
    CHECK(k == all.starts[row] || column > all.columns[k - 1]);
    CHECK(column == row ? value > 0 : value < -0.099 && value > -30.0);
    if (column > row) CHECK(entry(matrix, column, row) == value);
    sum += value;
    size += std::abs(value);
  }
  CHECK(sum > -1e-14 * size);
  return sum;
}

void a_power_grid_is_a_circuit() {
  const Matrix matrix = power_grid(250, 1, 2);
  const Csr<std::int32_t> all = matrix.view();
  CHECK(all.rows == 250 * 250 + 15);
  std::int64_t grounded = 0;
  for (std::int64_t row = 0; row < all.rows; ++row)
    grounded += ground_of(matrix, row) > 0.5 ? 1 : 0;
  CHECK(grounded > 30 && grounded < 100);  // one in a thousand
  CHECK(same(matrix, power_grid(250, 1, 1)));
  CHECK(!same(matrix, power_grid(250, 2, 2)));
}

void g3like_is_of_that_size() {
  const Matrix matrix = g3like(1, 2);
  CHECK(matrix.view().rows == kG3likeRows);
  CHECK(std::abs(static_cast<double>(matrix.values.size()) / 7660826 - 1) < 0.005);
  CHECK(hash_of(matrix) == 0x712cca2bca43d81f);
}

}  // namespace

int main() {
  for (const Grid& grid : {Grid{{1, 1, 1}}, Grid{{1, 1, 9}}, Grid{{1, 5, 3}}, Grid{{4, 3, 5}},
                           Grid{{3, 1, 2}}, Grid{{2, 2, 2}}}) {
    a_poisson_matrix_is_its_stencil(grid);
    ranks_generate_their_rows(grid);
  }
  ranks_generate_their_rows(Grid{{30, 29, 31}});  // several threads have something to do
  a_grid_too_large_is_refused();
  a_power_grid_is_a_circuit();
  if (!kUnderTsan) g3like_is_of_that_size();  // a power grid again, and large
}
