// Properties of a matrix: the same as computed entry by entry, also if rows repeat those before
// them; every invalid matrix is refused.

#include "matrix/properties.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

#include "check.h"
#include "matrix/check.h"
#include "matrix/error.h"
#include "matrix/matrix.h"
#include "systems.h"

using flowos::solve::Csr;
using flowos::solve::Facts;
using flowos::solve::facts_of;
using flowos::solve::MatrixError;

namespace {

constexpr std::int64_t kCells = 40000;  // several runs of rows

// A chain whose ends are held.
Matrix chain(std::int64_t cells) { return cells_of({{1, 1, cells}}, {1, 1, 1}); }

// Where an entry is stored.
double& entry(Matrix& matrix, std::int64_t row, std::int64_t column) {
  std::size_t k = at(matrix.starts[at(row)]);
  while (matrix.columns[k] != column) ++k;
  return matrix.values[k];
}

void facts_are_those_of_the_entries(const Matrix& matrix) {
  const Csr<std::int32_t> all = matrix.view();
  double least = std::numeric_limits<double>::infinity(), greatest = 0, shares = 0;
  bool negative = true, dominant = true;
  for (std::int64_t row = 0; row < all.rows; ++row) {
    double diagonal = 0, others = 0;
    for (std::int32_t k = all.starts[row]; k < all.starts[row + 1]; ++k) {
      if (all.columns[k] == row) {
        diagonal += all.values[k];
      } else {
        others += std::fabs(all.values[k]);
        negative = negative && all.values[k] <= 0;
      }
    }
    least = std::min(least, diagonal);
    greatest = std::max(greatest, diagonal);
    dominant = dominant && others <= diagonal * (1 + 1e-10);
    shares += others / diagonal;
  }
  for (int threads = 1; threads <= 3; ++threads) {
    const Facts facts = facts_of(all, threads);
    CHECK(facts.bad_row == -1);
    CHECK(facts.mirrored);
    CHECK(facts.evenness.min_diagonal == least);
    CHECK(facts.evenness.max_diagonal == greatest);
    CHECK(facts.evenness.negative == negative);
    CHECK(facts.dominance.max_diagonal == greatest);
    CHECK(facts.dominance.everywhere == dominant);
    CHECK(std::fabs(facts.dominance.share * static_cast<double>(all.rows) - shares) <
          1e-9 * shares);
    CHECK(facts.dominance.share == facts_of(all, 1).dominance.share);
  }
}

void few_values_are_told() {
  CHECK(facts_of(chain(kCells).view(), 2).evenness.values == Vector({-1}));
  CHECK(facts_of(cells_of({{9, 9, 9}}, {1, 2, 3}).view(), 2).evenness.values.size() == 3);
  CHECK(facts_of(cells_of({{9, 9, 9}}, {1, 1, 1}, true, 2).view(), 2).evenness.values.empty());
}

// Of a line of nine cells the first two and the last have other neighbours than the one before.
void rows_that_repeat_the_one_before_are_told() {
  constexpr std::int64_t kOfLines = 486;
  const Facts even = facts_of(cells_of({{9, 9, 9}}, {1, 2, 3}).view(), 2);
  CHECK(std::ranges::count(even.repeats, 1) == kOfLines);
  CHECK(even.repeats[1] == 0 && even.repeats[2] == 1 && even.repeats[8] == 0);
  Matrix one = cells_of({{9, 9, 9}}, {1, 2, 3});
  entry(one, 5, 5) += 1;  // neither it nor the one after it repeats any more
  CHECK(std::ranges::count(facts_of(one.view(), 2).repeats, 1) == kOfLines - 2);
}

// Above the diagonal other numbers than below it, where all rows are alike or only some.
void what_is_no_mirror_image_is_seen() {
  for (const std::int64_t count : {1, 2, 7, 20000}) {
    Matrix matrix = chain(kCells);
    for (std::int64_t row = 100; row < 100 + count; ++row) entry(matrix, row, row + 1) = -0.5;
    CHECK(!facts_of(matrix.view(), 2).mirrored);
    for (std::int64_t row = 100; row < 100 + count; ++row) entry(matrix, row + 1, row) = -0.5;
    CHECK(facts_of(matrix.view(), 2).mirrored);
  }
}

// As many on both sides, and as far on the whole.
void images_in_other_places_are_seen() {
  Matrix matrix = chain(50);
  for (const std::int64_t row : {10, 13}) entry(matrix, row, row + 1) = -0.5;
  for (const std::int64_t row : {11, 12}) entry(matrix, row + 1, row) = -0.5;
  CHECK(!facts_of(matrix.view(), 1).mirrored);
  matrix = chain(50);
  entry(matrix, 20, 21) = entry(matrix, 30, 29) = -0.5;
  CHECK(!facts_of(matrix.view(), 1).mirrored);
}

void told(const Matrix& matrix, const std::string& what) {
  try {
    flowos::solve::check(matrix.view(), 2);
  } catch (const MatrixError& error) {
    CHECK(std::string(error.what()).find(what) != std::string::npos);
    return;
  }
  CHECK(false);
}

void an_entry_in_parts_counts_as_one() {
  Matrix matrix{.starts = {0, 3, 5}, .columns = {0, 1, 1, 0, 1}, .values = {3, -1, -1, -2, 3}};
  CHECK(!facts_of(matrix.view(), 1).mirrored);
  CHECK(flowos::solve::check(matrix.view(), 1).evenness.min_diagonal == 3);
  matrix.values[3] = -2.5;
  told(matrix, "not symmetric: its entries (0, 1) and (1, 0) differ");
}

void the_first_bad_row_is_told() {
  Matrix matrix = chain(kCells);
  entry(matrix, 30000, 30001) = std::nan("");
  entry(matrix, 20000, 20000) = 0;
  told(matrix, "row 20000: the diagonal is 0");
  entry(matrix, 20000, 20000) = 2;
  told(matrix, "row 30000: the entry of column 30001 is NaN");
}

// Its columns go on and on, as those of all rows before it.
void a_column_beyond_the_last_is_told() {
  Matrix matrix;
  Rows rows(matrix);
  for (std::int64_t row = 0; row < 300; ++row) {
    rows.add(row, 2);
    rows.add(row + 1, -1);
    rows.end();
  }
  CHECK(facts_of(matrix.view(), 1).bad_row == 299);
  told(matrix, "row 299: has column 300");
}

void broken_starts_are_told() {
  told({.starts = {0, 9, 2, 3}, .columns = {0, 1, 2}, .values = {1, 1, 1}}, "row 0: ends before");
  told({.starts = {0, 1, 0, 3}, .columns = {0, 1, 2}, .values = {1, 1, 1}}, "row 1: ends before");
  told({.starts = {-1, 1, 2, 3}, .columns = {0, 1, 2}, .values = {1, 1, 1}}, "row 0: ends before");
}

void values_may_be_large() {
  const Matrix matrix{
      .starts = {0, 3, 6, 9},
      .columns = {0, 1, 2, 0, 1, 2, 0, 1, 2},
      .values = {1e308, -1e308, -1e308, -1e308, 1e308, 1e308, -1e308, 1e308, 1e308}};
  CHECK(facts_of(matrix.view(), 1).bad_row == -1);
}

}  // namespace

int main() {
  facts_are_those_of_the_entries(chain(kCells));
  facts_are_those_of_the_entries(cells_of({{1, 130, 140}}, {1, 1, 2}, false));
  facts_are_those_of_the_entries(cells_of({{30, 30, 30}}, {1, 1, 1}, true, 3));
  few_values_are_told();
  rows_that_repeat_the_one_before_are_told();
  what_is_no_mirror_image_is_seen();
  images_in_other_places_are_seen();
  an_entry_in_parts_counts_as_one();
  the_first_bad_row_is_told();
  a_column_beyond_the_last_is_told();
  broken_starts_are_told();
  values_may_be_large();
}
