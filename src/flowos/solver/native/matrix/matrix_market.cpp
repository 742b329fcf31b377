#include "matrix/matrix_market.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <ios>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/at_once.h"
#include "matrix/assemble.h"
#include "matrix/error.h"
#include "matrix/matrix.h"

namespace flowos::solve {
namespace {

constexpr std::size_t kPartBytes = std::size_t{1} << 16;  // less is not worth a thread
constexpr std::int64_t kMaxRows = std::numeric_limits<std::int32_t>::max();

[[noreturn]] void refuse(std::int64_t line, const std::string& why) {
  throw MatrixError("line " + std::to_string(line) + ": " + why);
}

bool is_blank(char letter) { return letter == ' ' || letter == '\t' || letter == '\r'; }

// Takes the first line off, without its end.
std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

// Takes the first word off; empty: there is none.
std::string_view take_word(std::string_view& line) {
  const auto begin = std::find_if_not(line.begin(), line.end(), is_blank);
  const auto end = std::find_if(begin, line.end(), is_blank);
  const std::string_view word(begin, end);
  line = std::string_view(end, line.end());
  return word;
}

// Text from a file, as one line that is safe on a terminal.
std::string in_quotes(std::string_view word) {
  constexpr std::size_t kMax = 40;
  std::string shown = "'";
  for (const char letter : word.substr(0, kMax)) {
    shown += std::isprint(static_cast<unsigned char>(letter)) != 0 ? letter : '?';
  }
  return shown + (word.size() > kMax ? "...'" : "'");
}

template <class Number>
std::optional<Number> number_in(std::string_view word) {
  if (word.size() > 1 && word[0] == '+' && word[1] != '-') word.remove_prefix(1);
  Number number = 0;
  const auto [end, problem] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (problem != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return number;
}

// With an exponent as Fortran writes it: 1.5D+03, 1.5d-3 and, of three digits behind a number with
// a point, 1.5+300. Out of line, as most files have none.
[[gnu::noinline, gnu::cold]] std::optional<double> fortran_number_in(std::string_view word) {
  const std::size_t end = word.find_first_of("dD+-", 1);
  if (end == std::string_view::npos) return std::nullopt;
  const bool has_letter = word[end] == 'd' || word[end] == 'D';
  const std::string_view digits = word.substr(0, end);
  const std::string_view exponent = word.substr(has_letter ? end + 1 : end);
  if (!has_letter && (exponent.size() != 4 || digits.find('.') == std::string_view::npos)) {
    return std::nullopt;
  }
  return number_in<double>(std::string(digits).append("e").append(exponent));
}

// What the file says of itself before its entries.
struct Head {
  bool has_values = true;
  bool has_integers = false;
  Mirror mirror = Mirror::no;
  std::int64_t rows = 0;
  std::int64_t entries = 0;
  std::int64_t lines = 0;  // that it takes
};

std::string lowered(std::string_view word) {
  std::string low;
  for (const char letter : word) {
    low += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  return low;
}

// %%MatrixMarket matrix coordinate real symmetric
void read_banner(std::string_view line, Head& head) {
  std::array<std::string, 5> words;
  for (std::string& word : words) word = lowered(take_word(line));
  const auto& [mark, object, format, field, symmetry] = words;
  if (mark != "%%matrixmarket" || object != "matrix") {
    refuse(1, "no Matrix Market file: it must begin with %%MatrixMarket matrix coordinate");
  }
  if (format != "coordinate") {
    refuse(1, "format " + in_quotes(format) + ": only sparse matrices are read: coordinate");
  }
  if (field != "real" && field != "integer" && field != "pattern") {
    refuse(1, "values " + in_quotes(field) + ": expected real, integer or pattern");
  }
  if (symmetry != "symmetric" && symmetry != "general") {
    refuse(1, "symmetry " + in_quotes(symmetry) + ": expected symmetric or general");
  }
  head.has_values = field != "pattern";
  head.has_integers = field == "integer";
  head.mirror = symmetry == "symmetric" ? Mirror::across_diagonal : Mirror::no;
}

void read_sizes(std::string_view line, Head& head) {
  std::array<std::int64_t, 3> sizes{};
  for (std::int64_t& size : sizes) {
    const std::string_view word = take_word(line);
    const std::optional<std::int64_t> number = number_in<std::int64_t>(word);
    if (!number || *number < 0) refuse(head.lines, "expected rows, columns and entries");
    size = *number;
  }
  if (!take_word(line).empty()) refuse(head.lines, "expected rows, columns and entries, no more");
  const auto [rows, columns, entries] = sizes;
  if (rows != columns) {
    refuse(head.lines, std::to_string(rows) + " rows and " + std::to_string(columns) +
                           " columns: only a square matrix can be solved with");
  }
  if (rows == 0) refuse(head.lines, "the matrix is empty");
  if (rows > kMaxRows) refuse(head.lines, "more than 2147483647 rows");
  if (entries < rows) {
    refuse(head.lines, std::to_string(entries) + " entries for " + std::to_string(rows) +
                           " rows: at least one has no diagonal entry");
  }
  head.rows = rows;
  head.entries = entries;
}

// Takes the banner, comments and sizes off.
Head take_head(std::string_view& text) {
  Head head;
  head.lines = 1;
  read_banner(take_line(text), head);
  while (!text.empty()) {
    std::string_view line = take_line(text);
    ++head.lines;
    std::string_view rest = line;
    if (line.starts_with('%') || take_word(rest).empty()) continue;
    read_sizes(line, head);
    return head;
  }
  refuse(head.lines, "the file ends before the line of rows, columns and entries");
}

// Whole lines that one thread reads, and what was in them.
struct Part {
  std::string_view text;
  std::vector<Entry> entries;
  std::int64_t lines = 0;  // up to the one that is wrong
  std::string wrong;
  std::int64_t first_below = 0;  // line of the first entry below the diagonal; 0: none
  std::int64_t first_above = 0;
};

std::vector<Part> split(std::string_view text, std::size_t count) {
  std::vector<Part> parts(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t wanted = text.size() / (count - i);
    const std::size_t end = i + 1 == count ? text.size() : text.find('\n', wanted);
    parts[i].text = text.substr(0, end == std::string_view::npos ? end : end + 1);
    text.remove_prefix(parts[i].text.size());
  }
  return parts;
}

// A row or column, counted from 1 in the file; -1: no such number.
std::int32_t place_in(std::string_view word, std::int64_t rows) {
  const std::optional<std::int64_t> number = number_in<std::int64_t>(word);
  return number && *number >= 1 && *number <= rows ? static_cast<std::int32_t>(*number - 1) : -1;
}

std::string no_place(const char* what, std::string_view word, std::int64_t rows) {
  return std::string(what) + " " + in_quotes(word) + ": expected 1 to " + std::to_string(rows);
}

// Empty: the line was an entry.
std::string read_entry(std::string_view line, const Head& head, Entry& entry) {
  const std::string_view row = take_word(line);
  const std::string_view column = take_word(line);
  entry.row = place_in(row, head.rows);
  if (entry.row < 0) return no_place("row", row, head.rows);
  entry.column = place_in(column, head.rows);
  if (entry.column < 0) return no_place("column", column, head.rows);
  if (head.has_values) {
    const std::string_view word = take_word(line);
    std::optional<double> value = number_in<double>(word);
    if (!value && !head.has_integers) value = fortran_number_in(word);
    if (!value || !std::isfinite(*value)) {
      return "value " + in_quotes(word) + ": expected a finite number";
    }
    if (head.has_integers && *value != std::trunc(*value)) {
      return "value " + in_quotes(word) + ": expected a whole number, as line 1 says";
    }
    entry.value = *value;
  }
  const std::string_view more = take_word(line);
  return more.empty() ? "" : "nothing is expected where " + in_quotes(more) + " is";
}

void read_part(Part& part, const Head& head) {
  std::string_view rest = part.text;
  part.entries.reserve(static_cast<std::size_t>(std::count(rest.begin(), rest.end(), '\n')) + 1);
  while (!rest.empty()) {
    const std::string_view line = take_line(rest);
    ++part.lines;
    if (std::all_of(line.begin(), line.end(), is_blank)) continue;
    Entry entry = {.row = 0, .column = 0, .value = 1};
    part.wrong = read_entry(line, head, entry);
    if (!part.wrong.empty()) return;
    part.entries.push_back(entry);
    std::int64_t& first = entry.row > entry.column ? part.first_below : part.first_above;
    if (entry.row != entry.column && first == 0) first = part.lines;
  }
}

// Both triangles in a file that says it has one would be added up.
class Triangles {
 public:
  void see(const Part& part, std::int64_t lines_before) {
    if (below_ == 0 && part.first_below > 0) below_ = lines_before + part.first_below;
    if (above_ == 0 && part.first_above > 0) above_ = lines_before + part.first_above;
  }
  void refuse_both() const {
    if (below_ == 0 || above_ == 0) return;
    refuse(std::max(below_, above_),
           "an entry on the other side of the diagonal: a symmetric file has one triangle only");
  }

 private:
  std::int64_t below_ = 0;
  std::int64_t above_ = 0;
};

void check(std::span<const Part> parts, const Head& head) {
  Triangles triangles;
  std::int64_t lines = head.lines;
  std::int64_t entries = 0;
  for (const Part& part : parts) {
    if (!part.wrong.empty()) refuse(lines + part.lines, part.wrong);
    triangles.see(part, lines);
    lines += part.lines;
    entries += static_cast<std::int64_t>(part.entries.size());
  }
  if (head.mirror == Mirror::across_diagonal) triangles.refuse_both();
  if (entries == head.entries) return;
  const std::string promised = std::to_string(head.entries) + " entries are promised in line " +
                               std::to_string(head.lines) + ", there are " +
                               std::to_string(entries);
  refuse(lines, promised + (entries < head.entries ? ": the file is cut off" : ""));
}

std::size_t parts_for(std::size_t bytes, int threads) {
  if (threads > 0) return static_cast<std::size_t>(threads);
  const std::size_t most = std::max(1U, std::thread::hardware_concurrency());
  return std::min(most, bytes / kPartBytes + 1);
}

}  // namespace

OwnedCsr<std::int32_t> parse_matrix_market(std::string_view text, int threads) {
  const Head head = take_head(text);
  std::vector<Part> parts = split(text, parts_for(text.size(), threads));
  const int count = static_cast<int>(parts.size());
  at_once(count, [&](int i) { read_part(parts[static_cast<std::size_t>(i)], head); });
  check(parts, head);
  std::vector<std::vector<Entry>> lists;
  lists.reserve(parts.size());
  for (Part& part : parts) lists.push_back(std::move(part.entries));
  return assemble(head.rows, lists, head.mirror, count);
}

OwnedCsr<std::int32_t> read_matrix_market(const std::string& path, int threads) {
  std::error_code problem;
  const std::uintmax_t size = std::filesystem::file_size(path, problem);
  if (problem) throw MatrixError(path + ": " + problem.message());
  std::string text(size, '\0');
  std::ifstream file(path, std::ios::binary);
  if (!file.read(text.data(), static_cast<std::streamsize>(size))) {
    throw MatrixError(path + ": cannot be read");
  }
  try {
    return parse_matrix_market(text, threads);
  } catch (const MatrixError& error) {
    throw MatrixError(path + ": " + error.what());
  }
}

}  // namespace flowos::solve
