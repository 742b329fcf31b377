#include "base/source_file.h"

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>

#include "base/errors.h"
#include "base/unique_fd.h"

namespace flowos::feed {
namespace {

// Length of the UTF-8 character that the bytes begin with (RFC 3629); 0: it is none.
std::size_t utf8_length(std::string_view bytes) {
  const auto byte = [&](std::size_t at) {
    return at < bytes.size() ? static_cast<unsigned char>(bytes[at]) : 0U;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first < 0xC0 || first >= 0xF8) return 0;
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  constexpr std::array<std::uint32_t, 5> least = {0, 0, 0x80, 0x800, 0x10000};
  std::uint32_t value = first & (0xFFU >> (length + 1));
  for (std::size_t at = 1; at < length; ++at) {
    if ((byte(at) & 0xC0U) != 0x80) return 0;
    value = value << 6U | (byte(at) & 0x3FU);
  }
  const bool is_surrogate = value >= 0xD800 && value < 0xE000;
  const bool is_valid = value >= least.at(length) && value <= 0x10FFFF;
  return is_valid && !is_surrogate ? length : 0;
}

}  // namespace

std::string shown(std::string_view name) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  while (!name.empty()) {
    const auto first = static_cast<unsigned char>(name[0]);
    const std::size_t length = first < 0x20 || first == 0x7F ? 0 : utf8_length(name);
    if (length == 0) {
      text += {'\\', 'x', digits[first >> 4U], digits[first & 0xFU]};
    } else {
      text += name.substr(0, length);
    }
    name.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return text;
}

std::string shown_below(const std::string& root, std::string_view path) {
  if (path.empty()) return shown(root);
  if (path.starts_with('/')) return shown(path);
  return shown(root) + (root.ends_with('/') ? "" : "/") + shown(path);
}

std::string system_says(int error) { return std::system_category().message(error); }

bool is_stale(int error) { return error == ESTALE; }  // NOLINT(misc-include-cleaner): in cerrno

std::string why_unreadable(int error) {
  constexpr const char* gone =
      "it was there when the data set was listed: list it again, or put it back";
  const auto advice = [error] {
    if (is_stale(error)) return gone;
    switch (error) {
      case ENOENT:
      case ENOTDIR:
        return gone;
      case EACCES:
      case EPERM:
        return "make it readable for you, or take it out of the data set";
      case ELOOP:
        return "take the link out of the data set";
      case EMFILE:
      case ENFILE:
        return "raise the limit of open files (ulimit -n)";
      case EIO:
        return "the storage has failed: its log, or that of this node, says how";
      default:
        return "mend it, or take it out of the data set";
    }
  };
  return system_says(error) + "; " + advice();
}

Descriptor open_below(int folder, const std::string& path, int flags) {
  bool was_stale = false;
  while (true) {
    Descriptor file(::openat(folder, path.c_str(), flags | O_CLOEXEC));
    if (file) return file;
    if (errno == EINTR) continue;
    if (!is_stale(errno) || was_stale) return file;
    was_stale = true;
  }
}

bool read_at(int fd, std::byte* into, std::size_t bytes, std::uint64_t offset) {
  while (bytes > 0) {
    const ssize_t got = ::pread(fd, into, bytes, static_cast<off_t>(offset));
    if (got < 0) {
      if (errno == EINTR) continue;
      return false;
    }
    if (got == 0) {
      errno = 0;
      return false;
    }
    into += got;
    bytes -= static_cast<std::size_t>(got);
    offset += static_cast<std::uint64_t>(got);
  }
  return true;
}

Descriptor open_root(const std::string& root) {
  Descriptor folder = open_below(AT_FDCWD, root, O_RDONLY | O_DIRECTORY);
  if (folder) return folder;
  if (errno == ENOTDIR) {
    throw FeedError(shown(root) + " is no folder; give the folder that holds the samples");
  }
  const int error = errno;
  const char* advice = error == ENOENT   ? "; is it mounted here, and spelled so?"
                       : error == EACCES ? "; ask its owner for the right to read it"
                                         : "";
  throw FeedError("cannot open the folder " + shown(root) + ": " + system_says(error) + advice);
}

}  // namespace flowos::feed
