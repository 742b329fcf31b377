// Matrix Market files as they are found in the wild, and what is refused with its line.

#include "matrix/matrix_market.h"

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "check.h"
#include "matrix/assemble.h"
#include "matrix/error.h"
#include "matrix/matrix.h"

using flowos::solve::Csr;
using flowos::solve::MatrixError;
using flowos::solve::OwnedCsr;
using flowos::solve::parse_matrix_market;

namespace {

using Matrix = OwnedCsr<std::int32_t>;
using Places = std::vector<std::int32_t>;
using Values = std::vector<double>;

constexpr const char* kSymmetric = "%%MatrixMarket matrix coordinate real symmetric\n";
constexpr const char* kGeneral = "%%MatrixMarket matrix coordinate real general\n";

bool is(const Matrix& matrix, const Places& starts, const Places& columns, const Values& values) {
  return matrix.starts == starts && matrix.columns == columns && matrix.values == values;
}

template <class Work>
std::string refused(const Work& work) {
  try {
    work();
  } catch (const MatrixError& error) {
    return error.what();
  }
  return "";
}

std::string wrong(const std::string& text) {
  return refused([&] { parse_matrix_market(text); });
}

void one_triangle_becomes_both() {
  const std::string text =
      std::string(kSymmetric) + "% by hand\n3 3 5\n1 1 2\n2 1 -1\n2 2 3\n" + "3 2 -0.5\n3 3 4\n";
  CHECK(is(parse_matrix_market(text), {0, 2, 5, 7}, {0, 1, 0, 1, 2, 1, 2},
           {2, -1, -1, 3, -0.5, -0.5, 4}));
}

void a_general_file_is_taken_as_it_is() {
  const std::string text = std::string(kGeneral) + "2 2 3\n2 2 1e-3\n2 1 -1\n1 1 +7\n";
  CHECK(is(parse_matrix_market(text), {0, 1, 3}, {0, 0, 1}, {7, -1, 1e-3}));
}

void a_pattern_has_ones_and_integers_are_numbers() {
  const std::string pattern = "%%MatrixMarket matrix coordinate pattern symmetric\n2 2 2\n1 1\n2 2";
  CHECK(is(parse_matrix_market(pattern), {0, 1, 2}, {0, 1}, {1, 1}));
  const std::string integers = "%%MatrixMarket matrix coordinate integer general\n1 1 1\n1 1 -9\n";
  CHECK(is(parse_matrix_market(integers), {0, 1}, {0}, {-9}));
}

void entries_given_twice_are_added() {
  const std::string text = std::string(kSymmetric) + "2 2 4\n1 1 1\n2 1 0.25\n2 1 0.5\n2 2 1\n";
  CHECK(is(parse_matrix_market(text), {0, 2, 4}, {0, 1, 0, 1}, {1, 0.75, 0.75, 1}));
}

void line_ends_of_windows_blank_lines_and_capitals_are_read() {
  const std::string text =
      "%%MatrixMarket MATRIX coordinate Real Symmetric\r\n%\r\n\r\n2 2 2\r\n\r\n1 1 1\r\n2 2 2\r\n";
  CHECK(is(parse_matrix_market(text), {0, 1, 2}, {0, 1}, {1, 2}));
}

void what_is_wrong_is_told_with_its_line() {
  const std::string symmetric = kSymmetric;
  const std::initializer_list<std::pair<std::string, std::string>> cases = {
      {"", "line 1: no Matrix Market file"},
      {"\x1f\x8b\x08", "line 1: no Matrix Market file"},
      {"%%MatrixMarket matrix array real general\n2 2\n", "line 1: format 'array'"},
      {"%%MatrixMarket matrix coordinate complex symmetric\n", "line 1: values 'complex'"},
      {"%%MatrixMarket matrix coordinate real hermitian\n", "line 1: symmetry 'hermitian'"},
      {symmetric, "line 1: the file ends before"},
      {symmetric + "%\n2 2\n", "line 3: expected rows, columns and entries"},
      {symmetric + "2 2 2 2\n", "line 2: expected rows, columns and entries, no more"},
      {symmetric + "2 3 2\n", "line 2: 2 rows and 3 columns: only a square matrix"},
      {symmetric + "0 0 0\n", "line 2: the matrix is empty"},
      {symmetric + "2147483648 2147483648 2147483648\n", "line 2: more than 2147483647 rows"},
      {symmetric + "99999999999999999999 1 1\n", "line 2: expected rows"},
      {symmetric + "1000000000 1000000000 3\n", "line 2: 3 entries for 1000000000 rows"},
      {symmetric + "2 2 2\n1 1 1\n3 2 1\n", "line 4: row '3': expected 1 to 2"},
      {symmetric + "2 2 2\n1 1 1\n2 0 1\n", "line 4: column '0': expected 1 to 2"},
      {symmetric + "2 2 2\n1 1 nan\n", "line 3: value 'nan': expected a finite number"},
      {"%%MatrixMarket matrix coordinate integer general\n1 1 1\n1 1 2.7\n",
       "line 3: value '2.7': expected a whole number, as line 1 says"},
      {symmetric + "2 2 2\n1 1 1e999\n", "line 3: value '1e999'"},
      {symmetric + "2 2 2\n1 1 1,5\n", "line 3: value '1,5'"},
      {symmetric + "2 2 2\n1 1\n", "line 3: value ''"},
      {symmetric + "2 2 2\n1 1 1 0\n", "line 3: nothing is expected where '0' is"},
      {symmetric + "2 2 2\n1 1 1\n", "line 3: 2 entries are promised in line 2, there are 1: the"},
      {symmetric + "1 1 1\n1 1 1\n1 1 1\n", "line 4: 1 entries are promised in line 2, there are"},
      {symmetric + "2 2 4\n1 1 1\n2 1 1\n1 2 1\n2 2 1\n", "line 5: an entry on the other side"},
      {symmetric + "2000000000 2000000000 2000000000\n1 1 1\n", "line 3: 2000000000 entries are"},
  };
  for (const auto& [text, told] : cases) CHECK(wrong(text).starts_with(told));
}

std::string chain(int rows) {
  std::string text = std::string(kSymmetric) + std::to_string(rows) + " " + std::to_string(rows) +
                     " " + std::to_string(2 * rows - 1) + "\n";
  for (int row = 1; row <= rows; ++row) {
    const std::string name = std::to_string(row);
    text.append(name).append(" ").append(name).append(" 2.").append(name).append("\n");
    if (row < rows) text.append(std::to_string(row + 1)).append(" ").append(name).append(" -1\n");
  }
  return text;
}

void any_number_of_threads_reads_the_same() {
  const std::string text = chain(20000);
  const Matrix one = parse_matrix_market(text, 1);
  CHECK(one.columns.size() == 3 * 20000 - 2);
  for (const int threads : {0, 2, 3, 7}) {
    const Matrix many = parse_matrix_market(text, threads);
    CHECK(is(many, one.starts, one.columns, one.values));
  }
}

void a_line_is_counted_over_the_parts_of_all_threads() {
  std::string text = chain(20000);
  const std::size_t at = text.find("\n15000 15000 ") + 1;
  text[at] = 'x';
  for (const int threads : {1, 2, 5}) {
    const std::string told = refused([&] { parse_matrix_market(text, threads); });
    CHECK(told.starts_with("line 30001: row 'x5000': expected"));
  }
}

void a_long_row_is_sorted_and_added_up_too() {
  std::string text = std::string(kGeneral) + "100 100 300\n";
  for (int i = 0; i < 100; ++i) text += "1 " + std::to_string(100 - i) + " 1\n";
  for (int i = 0; i < 100; ++i) text += "1 " + std::to_string(i * 37 % 100 + 1) + " 0.5\n";
  for (int i = 1; i <= 100; ++i) text += std::to_string(i) + " " + std::to_string(i) + " 8\n";
  const Matrix matrix = parse_matrix_market(text);
  CHECK(matrix.starts[1] == 100 && matrix.starts[100] == 199);
  for (std::size_t i = 0; i < 100; ++i) {
    CHECK(matrix.columns[i] == static_cast<std::int32_t>(i));
    CHECK(matrix.values[i] == (i == 0 ? 9.5 : 1.5));
  }
}

void a_file_is_named_where_it_is_wrong() {
  const std::string path = "/tmp/matrix_market_test." + std::to_string(::getpid()) + ".mtx";
  CHECK(refused([&] { flowos::solve::read_matrix_market(path); }).starts_with(path + ": No such"));
  std::ofstream(path) << kSymmetric << "1 1 1\n1 1 x\n";
  const std::string told = refused([&] { flowos::solve::read_matrix_market(path); });
  std::ofstream(path) << kSymmetric << "1 1 1\n1 1 5\n";
  const Matrix matrix = flowos::solve::read_matrix_market(path);
  CHECK(::unlink(path.c_str()) == 0);
  CHECK(told == path + ": line 3: value 'x': expected a finite number");
  CHECK(is(matrix, {0, 1}, {0}, {5}));
  CHECK(!refused([] { flowos::solve::read_matrix_market("/tmp"); }).empty());
}

// The upper triangle holds what must not be looked at, or be averaged.
template <class Index>
void triangles_are_completed() {
  const std::vector<Index> starts = {0, 2, 4, 5};
  const std::vector<Index> columns = {1, 0, 0, 1, 2};
  const Values values = {5, 1, 3, 2, 4};
  const Csr<Index> matrix = {
      .rows = 3, .starts = starts.data(), .columns = columns.data(), .values = values.data()};
  for (const int threads : {0, 1, 3, 8}) {
    CHECK(is(flowos::solve::from_lower(matrix, threads), {0, 2, 4, 5}, {0, 1, 0, 1, 2},
             {1, 3, 3, 2, 4}));
    CHECK(is(flowos::solve::symmetrized(matrix, threads), {0, 2, 4, 5}, {0, 1, 0, 1, 2},
             {1, 4, 4, 2, 4}));
  }
}

void arrays_that_are_no_matrix_are_refused() {
  const Values values(4, 1);
  const Places columns = {0, 1, 0, 2};
  const auto told = [&](const Places& starts) {
    const Csr<std::int32_t> matrix = {.rows = static_cast<std::int64_t>(starts.size()) - 1,
                                      .starts = starts.data(),
                                      .columns = columns.data(),
                                      .values = values.data()};
    return refused([&] { flowos::solve::from_lower(matrix, 2); });
  };
  CHECK(told({0, 2, 4}) == "row 1 has column 2: there are 0 to 1");
  CHECK(told({0, 3, 2, 4}).starts_with("row 1 ends before it begins"));
  CHECK(told({0, 9, 2, 4}).starts_with("row 0 ends before it begins"));
  CHECK(told({-1, 2, 3, 4}).starts_with("row 0 ends before it begins"));
}

}  // namespace

int main() {
  one_triangle_becomes_both();
  a_general_file_is_taken_as_it_is();
  a_pattern_has_ones_and_integers_are_numbers();
  entries_given_twice_are_added();
  line_ends_of_windows_blank_lines_and_capitals_are_read();
  what_is_wrong_is_told_with_its_line();
  any_number_of_threads_reads_the_same();
  a_line_is_counted_over_the_parts_of_all_threads();
  a_long_row_is_sorted_and_added_up_too();
  a_file_is_named_where_it_is_wrong();
  triangles_are_completed<std::int32_t>();
  triangles_are_completed<std::int64_t>();
  arrays_that_are_no_matrix_are_refused();
}
