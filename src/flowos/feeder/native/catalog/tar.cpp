#include "catalog/tar.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/errors.h"
#include "base/source_file.h"

namespace flowos::feed {
namespace {

constexpr std::size_t block_bytes = 512;
// Of zeros at the end, which fill a record: GNU tar and Python write 21 blocks of them at most, but
// a longer record may be asked for.
constexpr std::size_t max_zeros = 1 << 20;
// Holds a header, a member of a few numbers and the next header; small next to a round trip.
constexpr std::size_t min_window = 8 << 10;
constexpr std::size_t max_window = 1 << 20;
// What eight readers get in a round trip of a millisecond over a link of 1 Gbit/s: nearer headers
// are read together with what lies between them.
constexpr std::uint64_t near_bytes = 16 << 10;
// Of a path or of pax records; longer ones are no honest ones.
constexpr std::uint64_t max_extension = 1 << 20;

// The fields of a header (POSIX.1-2001, pax, ustar Interchange Format).
struct Field {
  std::size_t offset, bytes;
};
constexpr Field name_field = {0, 100}, size_field = {124, 12}, checksum_field = {148, 8},
                type_field = {156, 1}, magic_field = {257, 6}, prefix_field = {345, 155};

std::string_view whole(std::string_view block, Field field) {
  return block.substr(field.offset, field.bytes);
}

std::optional<std::uint64_t> decimal(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string_view until_zero(std::string_view text) { return text.substr(0, text.find('\0')); }

// Octal digits, or GNU's big-endian binary where the first bit is set. Nothing: neither.
std::optional<std::uint64_t> number(std::string_view field) {
  const auto first = static_cast<unsigned char>(field[0]);
  if ((first & 0x80U) != 0) {
    std::uint64_t value = first & 0x7FU;
    for (const char c : field.substr(1)) {
      if (value >> 55U != 0) return std::nullopt;  // negative, or not to be had by off_t
      value = value << 8U | static_cast<unsigned char>(c);
    }
    return value;
  }
  field = field.substr(std::min(field.find_first_not_of(' '), field.size()));
  field = field.substr(0, field.find_first_of(std::string_view(" \0", 2)));
  std::uint64_t value = 0;
  if (field.empty()) return value;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value, 8);
  if (error != std::errc() || end != field.data() + field.size()) return std::nullopt;
  return value;
}

// Whether the header's sum is right; some old archives were summed as signed characters.
bool is_summed(std::string_view block) {
  std::int64_t plain = 0, with_sign = 0;
  for (std::size_t i = 0; i < block.size(); ++i) {
    const bool is_sum = i - checksum_field.offset < checksum_field.bytes;
    const char c = is_sum ? ' ' : block[i];
    plain += static_cast<unsigned char>(c);
    with_sign += static_cast<signed char>(c);
  }
  const auto stated = number(whole(block, checksum_field));
  return stated && (std::cmp_equal(*stated, plain) || std::cmp_equal(*stated, with_sign));
}

bool is_zero(std::string_view bytes) {
  return bytes.find_first_not_of('\0') == std::string_view::npos;
}

bool is_regular(char type) { return type == '0' || type == '\0' || type == '7'; }
bool has_no_content(char type) { return type >= '1' && type <= '6'; }
bool is_extension(char type) { return type == 'x' || type == 'g' || type == 'L' || type == 'K'; }

}  // namespace

TarReader::TarReader(int fd, std::uint64_t bytes, std::string name)
    : fd_(fd), bytes_(bytes), name_(std::move(name)) {
  if (bytes_ == 0) refuse("is empty; write it again, or leave it out");
}

std::optional<TarMember> TarReader::next() {
  while (auto head = member_header()) {
    const std::uint64_t offset = at_;
    pass(head->size);
    last_path_ = head->path;
    if (is_regular(head->type) && !head->path.ends_with('/')) {
      return TarMember{.path = std::move(head->path), .offset = offset, .size = head->size};
    }
  }
  return std::nullopt;
}

// With what extended headers before it say, which are passed. Nothing: the end.
std::optional<TarReader::Header> TarReader::member_header() {
  Said said;
  auto head = header();
  while (head && is_extension(head->type)) {
    check_whole(*head);
    take_extension(*head, said);
    pass(head->size);
    head = header();
  }
  if (!head) return std::nullopt;
  if (said.path) head->path = *said.path;
  if (said.size) head->size = *said.size;
  if (has_no_content(head->type)) head->size = 0;
  check_whole(*head);
  return head;
}

// Content of so many bytes, which there are; the last padding may be missing, but not a part of it.
void TarReader::pass(std::uint64_t size) {
  const std::uint64_t padding = (block_bytes - size % block_bytes) % block_bytes;
  const std::uint64_t left = bytes_ - at_ - size;
  if (left != 0 && left < padding) {
    refuse("is cut off: it ends at byte " + std::to_string(bytes_) +
           ", in the middle of a block; write it again");
  }
  at_ += size + std::min(left, padding);
}

std::string TarReader::content(const TarMember& member, std::size_t max_bytes) {
  return std::string(view(member.offset, std::min<std::uint64_t>(member.size, max_bytes)));
}

// The header at at_, which is then behind it. Nothing: the end.
std::optional<TarReader::Header> TarReader::header() {
  if (at_ == bytes_) return std::nullopt;  // without the mark of the end, as some programs write
  if (bytes_ - at_ < block_bytes) check({});
  const std::string_view block = view(at_, block_bytes);
  if (is_zero(block)) {
    check_last();
    const std::uint64_t rest = std::min<std::uint64_t>(bytes_ - at_, block_bytes);
    if (!is_zero(view(bytes_ - rest, rest))) {
      damaged("zeros, but no end: there is more behind them");
    }
    return std::nullopt;
  }
  check(block);
  Header head{.type = block[type_field.offset],
              .path = std::string(until_zero(whole(block, name_field))),
              .size = 0};
  const std::string_view prefix = until_zero(whole(block, prefix_field));
  if (whole(block, magic_field) == std::string_view("ustar\0", 6) && !prefix.empty()) {
    head.path = std::string(prefix) + "/" + head.path;
  }
  const auto size = number(whole(block, size_field));
  if (!size) damaged("the size of " + shown(head.path) + " is no number");
  head.size = *size;
  at_ += block_bytes;
  return head;
}

// At the zeros of its end: readers of tars stop there, whatever follows.
void TarReader::check_last() {
  for (std::uint64_t at = at_; at - at_ <= max_zeros && bytes_ - at >= block_bytes;
       at += block_bytes) {
    const std::string_view block = view(at, block_bytes);
    if (is_zero(block)) continue;
    if (!is_summed(block)) return;
    refuse("has another archive behind its end, from byte " + std::to_string(at) +
           " on, as of cat a.tar b.tar: give both by themselves, or write them as one");
  }
}

void TarReader::check(std::string_view block) const {
  if (block.empty()) {
    if (at_ == 0) refuse("is no tar archive: it is too short");
    refuse("is cut off in the header after " + shown(last_path_) + "; write it again");
  }
  if (at_ == 0 && block.starts_with("\x1f\x8b")) {
    refuse("is compressed, so that no sample can be reached by itself; gunzip it");
  }
  if (!is_summed(block)) {
    if (at_ == 0) refuse("is no tar archive: the sum of its first header is wrong");
    damaged("the sum of this header is wrong");
  }
  if (block[type_field.offset] == 'S') {
    refuse("holds the sparse file " + shown(until_zero(block)) + "; write it without --sparse");
  }
}

void TarReader::check_whole(const Header& head) const {
  if (head.size <= bytes_ - at_) return;
  refuse("is cut off: its member " + shown(head.path) + " has " + std::to_string(head.size) +
         " bytes from byte " + std::to_string(at_) + " on, but the file ends at byte " +
         std::to_string(bytes_) + "; write it again");
}

void TarReader::take_extension(const Header& head, Said& said) {
  if (head.type == 'K' || head.type == 'g') return;  // of links, or no member's own
  if (head.size > max_extension) damaged("a name or record of more than 1 MiB");
  const std::string_view content = view(at_, head.size);
  if (head.type == 'L') {
    said.path = until_zero(content);
  } else {
    take_pax(content, said);
  }
}

// Records such as "30 path=a/name\n": their length, a space, a keyword, =, a value, a newline.
void TarReader::take_pax(std::string_view records, Said& said) const {
  while (!records.empty() && records[0] != '\0') {
    const std::size_t digits = std::min(records.find(' '), records.size());
    const std::uint64_t length = decimal(records.substr(0, digits)).value_or(0);
    if (length > records.size() || length < digits + 2 || records[length - 1] != '\n') {
      damaged("its pax records cannot be read");
    }
    const std::string_view record = records.substr(digits + 1, length - digits - 2);
    const std::string_view value = record.substr(std::min(record.find('=') + 1, record.size()));
    if (record.starts_with("path=")) said.path = until_zero(value);
    if (record.starts_with("GNU.sparse.")) {
      refuse("holds a sparse file after " + shown(last_path_) + "; write it without --sparse");
    }
    if (record.starts_with("size=")) {
      said.size = decimal(value);
      if (!said.size) damaged("a size is no number");
    }
    records.remove_prefix(length);
  }
}

// These bytes, which are within the file; until the next view.
std::string_view TarReader::view(std::uint64_t offset, std::size_t bytes) {
  const bool is_there = offset >= window_start_ && offset - window_start_ <= window_.size() &&
                        bytes <= window_.size() - (offset - window_start_);
  if (!is_there) {
    const bool is_near =
        views_ > 0 && offset >= window_start_ && (offset - window_start_) / views_ <= near_bytes;
    std::size_t length = is_near ? std::min(2 * window_.size(), max_window) : min_window;
    length = std::min<std::uint64_t>(std::max(length, bytes), bytes_ - offset);
    window_.resize(length);
    window_start_ = offset;
    views_ = 0;
    if (!read_at(fd_, std::as_writable_bytes(std::span(window_)).data(), length, offset)) {
      const int error = errno;
      throw FeedError("cannot read " + name_ + " at byte " + std::to_string(offset) + ": " +
                      (error == 0 ? "it has become shorter while it was listed; list it again"
                                  : why_unreadable(error)));
    }
  }
  ++views_;
  return {window_.data() + (offset - window_start_), bytes};
}

void TarReader::damaged(const std::string& what) const {
  const std::string after = last_path_.empty() ? "" : ", after " + shown(last_path_);
  refuse("is damaged at byte " + std::to_string(at_) + after + ": " + what + "; write it again");
}

void TarReader::refuse(const std::string& what) const { throw FeedError(name_ + " " + what); }

}  // namespace flowos::feed
