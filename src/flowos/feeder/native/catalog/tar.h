#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace flowos::feed {

struct TarMember {
  std::string path;
  std::uint64_t offset;  // of its content, within the archive
  std::uint64_t size;
};

// The regular files of a tar archive, one after the other, by their headers: POSIX.1-2001 ustar and
// pax (path, size), v7, and GNU's long names and sizes. What lies between headers is read where
// it is little, else it is passed over.
class TarReader {
 public:
  // `name` is for complaints. The file must stay open.
  TarReader(int fd, std::uint64_t bytes, std::string name);

  // Nothing: the end. Throws FeedError if it is no tar, compressed, truncated, damaged, or has a
  // sparse member.
  std::optional<TarMember> next();
  // The first bytes of a member, at most `max_bytes`. Throws FeedError if they cannot be read.
  std::string content(const TarMember& member, std::size_t max_bytes);

 private:
  struct Header {
    char type;
    std::string path;
    std::uint64_t size;
  };
  // What extended headers say of the member that follows.
  struct Said {
    std::optional<std::string> path;
    std::optional<std::uint64_t> size;
  };

  std::optional<Header> member_header();
  std::optional<Header> header();
  void pass(std::uint64_t size);
  void check(std::string_view block) const;
  void check_last();
  void check_whole(const Header& header) const;
  void take_extension(const Header& header, Said& said);
  void take_pax(std::string_view records, Said& said) const;
  std::string_view view(std::uint64_t offset, std::size_t bytes);
  [[noreturn]] void damaged(const std::string& what) const;
  [[noreturn]] void refuse(const std::string& what) const;

  int fd_;
  std::uint64_t bytes_;
  std::string name_;
  std::uint64_t at_ = 0;   // where the next header is
  std::string last_path_;  // of the last member that was given
  std::vector<char> window_;
  std::uint64_t window_start_ = 0;
  std::uint64_t views_ = 0;  // that the window has served
};

}  // namespace flowos::feed
