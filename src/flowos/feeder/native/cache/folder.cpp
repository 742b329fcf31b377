#include "cache/folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/errors.h"
#include "base/unique_fd.h"

namespace flowos::feed::cache {
namespace {

// O_NOFOLLOW looks at the last part only, and not at all where a slash follows it.
std::string without_last_slashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

void make_folder(const std::string& path) {
  std::error_code ignored;  // what matters is whether it can be opened
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  if (!parent.empty()) std::filesystem::create_directories(parent, ignored);
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    throw FeedError("cache folder " + path + " cannot be made: " + reason(errno));
  }
}

void refuse_what_is_not_ours(const Folder& folder) {
  struct stat status{};
  if (::fstat(folder.at.get(), &status) != 0) {
    throw FeedError("cache folder " + folder.path + ": " + reason(errno));
  }
  if (status.st_uid != ::geteuid()) {
    throw FeedError("cache folder " + folder.path + " belongs to user " +
                    std::to_string(status.st_uid) + ", not to you: give one of your own");
  }
  if ((status.st_mode & 077U) != 0 && ::fchmod(folder.at.get(), 0700) != 0 &&
      (status.st_mode & 022U) != 0) {
    throw FeedError("cache folder " + folder.path + ": others may write into it: chmod 700 it");
  }
}

std::vector<std::string> names_in(const Folder& folder) {
  std::vector<std::string> names;
  const int copy = ::openat(folder.at.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(copy < 0 ? nullptr : ::fdopendir(copy),
                                                    &::closedir);
  if (!listing) {
    const int error = errno;
    if (copy >= 0) ::close(copy);
    throw FeedError("cache folder " + folder.path + " cannot be listed: " + reason(error));
  }
  while (const dirent* entry = ::readdir(listing.get())) {
    const std::string_view name(entry->d_name);
    if (name != "." && name != "..") names.emplace_back(name);
  }
  return names;
}

// Files are removed from a cache's folder, so it must not be one that holds other things.
void refuse_other_things(const Folder& folder) {
  bool ours = true;
  for (const std::string& name : names_in(folder)) {
    if (name == "slots" || name == "index") return;
    ours = false;
  }
  if (!ours) {
    throw FeedError("cache folder " + folder.path +
                    " holds other things: give a folder that is empty or not there");
  }
}

// Where the file system copies what is written anew, room that was reserved is no promise.
void write_in_place(int file) {
  int flags = 0;
  if (::ioctl(file, FS_IOC_GETFLAGS, &flags) != 0) return;
  flags |= FS_NOCOW_FL;
  ::ioctl(file, FS_IOC_SETFLAGS, &flags);  // refused where it means nothing
}

}  // namespace

Folder open_folder(const std::string& given, bool make) {
  const std::string path = without_last_slashes(given);
  if (make) make_folder(path);
  Folder folder{path,
                Descriptor(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW))};
  if (!folder.at) {
    const int error = errno;
    const std::error_code linked(error, std::system_category());
    std::error_code ignored;
    if (std::filesystem::is_symlink(path, ignored)) {
      throw FeedError("cache folder " + path + " is a link: give the folder itself");
    }
    throw FeedError("cache folder " + path + " cannot be opened: " + linked.message());
  }
  refuse_what_is_not_ours(folder);
  refuse_other_things(folder);
  return folder;
}

std::string segment_name(std::uint32_t number) { return std::to_string(number) + ".seg"; }

std::vector<std::uint32_t> segments_in(const Folder& folder) {
  std::vector<std::uint32_t> numbers;
  for (const std::string& name : names_in(folder)) {
    std::uint32_t number = 0;
    const auto parsed = std::from_chars(name.data(), name.data() + name.size(), number);
    if (parsed.ec == std::errc() && number != 0 && name == segment_name(number)) {
      numbers.push_back(number);
    }
  }
  return numbers;
}

Descriptor open_file(const Folder& folder, const std::string& name, int flags) {
  Descriptor file(
      ::openat(folder.at.get(), name.c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  struct stat status{};
  if (!file || (::fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode))) return file;
  file = Descriptor();
  errno = S_ISDIR(status.st_mode) ? EISDIR : ENXIO;
  return file;
}

void remove_file(const Folder& folder, const std::string& name) {
  const Descriptor file = open_file(folder, name, O_WRONLY);
  if (file && ::ftruncate(file.get(), 0) != 0) errno = 0;  // then the blocks go with the last user
  ::unlinkat(folder.at.get(), name.c_str(), 0);
}

std::uint64_t max_file_bytes() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return std::numeric_limits<std::int64_t>::max();
  }
  return limit.rlim_cur;
}

int reserve(int file, std::uint64_t bytes) {
  if (bytes > max_file_bytes()) return EFBIG;  // else a signal would come, SIGXFSZ
  write_in_place(file);
  while (::fallocate(file, 0, 0, static_cast<off_t>(bytes)) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

std::string boot_id() {
  const Descriptor file(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  std::array<char, 36> text{};
  if (!file || ::read(file.get(), text.data(), text.size()) != 36) return "";
  return {text.data(), text.size()};
}

std::string reason(int error) { return std::system_category().message(error); }

std::string readable(std::uint64_t bytes) {
  constexpr std::array<const char*, 5> units = {"B", "kB", "MB", "GB", "TB"};
  auto number = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; number >= 1000 && unit + 1 < units.size(); ++unit) number /= 1000;
  std::array<char, 32> text{};
  const int length = std::snprintf(text.data(), text.size(), unit == 0 ? "%.0f %s" : "%.1f %s",
                                   number, units[unit]);
  return {text.data(), static_cast<std::size_t>(length)};
}

}  // namespace flowos::feed::cache
