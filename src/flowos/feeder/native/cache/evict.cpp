#include "cache/evict.h"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <string>
#include <system_error>
#include <tuple>
#include <vector>

#include "base/errors.h"
#include "cache/attach.h"

namespace flowos::feed::cache {
namespace {

struct Neighbour {
  std::int64_t seconds = 0;  // of its last use
  std::int64_t nanoseconds = 0;
  std::string folder;

  bool operator<(const Neighbour& other) const {
    return std::tie(seconds, nanoseconds, folder) <
           std::tie(other.seconds, other.nanoseconds, other.folder);
  }
};

std::vector<Neighbour> oldest_first(const std::string& neighbours, const std::string& mine) {
  std::vector<Neighbour> found;
  std::error_code error;
  for (std::filesystem::directory_iterator each(neighbours, error), end; !error && each != end;
       each.increment(error)) {
    std::error_code ignored;
    if (each->is_symlink(ignored)) continue;  // to another cache folder's: not of this one
    const std::filesystem::path folder = each->path() / "samples";
    if (std::filesystem::equivalent(folder, mine, ignored)) continue;
    struct stat status{};
    if (::lstat((folder / "slots").c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    found.push_back({status.st_mtim.tv_sec, status.st_mtim.tv_nsec, folder.string()});
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

std::uint64_t evict_oldest(const std::string& neighbours, const std::string& mine) {
  if (neighbours.empty()) return 0;
  try {
    for (const Neighbour& each : oldest_first(neighbours, mine)) {
      try {
        if (const std::uint64_t bytes = remove_all(each.folder, std::chrono::milliseconds(0))) {
          return bytes;
        }
      } catch (const FeedError&) {
        continue;  // in use, or not ours
      }
    }
  } catch (const std::exception&) {
    return 0;
  }
  return 0;
}

}  // namespace flowos::feed::cache
