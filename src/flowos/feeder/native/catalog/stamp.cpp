#include "catalog/stamp.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <string>
#include <utility>

#include "base/errors.h"
#include "base/source_file.h"
#include "base/unique_fd.h"
#include "catalog/catalog.h"

namespace flowos::feed {
Descriptor open_piece(const std::string& root, int folder, const std::string& path,
                      Catalog::Stamp& stamp) {
  struct stat state{};
  Descriptor file = open_below(folder, path, O_RDONLY);
  if (!file || ::fstat(file.get(), &state) != 0) {
    const int error = errno;
    const std::string why =
        error == ENOENT ? system_says(error) + "; is the name right?" : why_unreadable(error);
    throw FeedError("cannot read " + shown_below(root, path) + ": " + why);
  }
  if (!S_ISREG(state.st_mode)) {
    throw FeedError(shown_below(root, path) + " is no file; name the files themselves");
  }
  stamp = stamp_of(path, state);
  return file;
}

std::int64_t nanoseconds(const timespec& time) {
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

Catalog::Stamp stamp_of(std::string path, const struct stat& state) {
  const std::int64_t mtime_ns = nanoseconds(state.st_mtim);
  const std::int64_t now_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(
                                  std::chrono::system_clock::now().time_since_epoch())
                                  .count();
  return {.path = std::move(path),
          .mtime_ns = mtime_ns,
          .size = S_ISDIR(state.st_mode) ? -1 : static_cast<std::int64_t>(state.st_size),
          .settled = mtime_ns < now_ns - settling_ns};
}

}  // namespace flowos::feed
