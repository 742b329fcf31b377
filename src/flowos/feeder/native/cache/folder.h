#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "base/unique_fd.h"

namespace flowos::feed::cache {

// The folder of a cache, opened: its files are reached through the descriptor only, so that they
// stay the same ones whatever becomes of the path.
struct Folder {
  std::string path;
  Descriptor at;
};

// Throws FeedError if it does not exist (unless created), is no folder, a link, another user's, or
// others may write into it and that cannot be taken from them.
Folder open_folder(const std::string& path, bool make);

std::string segment_name(std::uint32_t number);
// Of the segments that lie in it.
std::vector<std::uint32_t> segments_in(const Folder& folder);
// A regular file of the folder. None, with errno, and never waited for, of what else has the name:
// a link (ELOOP), a folder (EISDIR), a pipe or a device (ENXIO).
Descriptor open_file(const Folder& folder, const std::string& name, int flags);
// Gives their blocks back even where some process has the file open still.
void remove_file(const Folder& folder, const std::string& name);

// Room for the whole file, taken now. An errno, 0: done.
int reserve(int file, std::uint64_t bytes);
// As many bytes as this process may write into one file (RLIMIT_FSIZE).
std::uint64_t max_file_bytes();

// Which start of the machine this is; empty: it does not say.
std::string boot_id();
// What an errno means.
std::string reason(int error);
// "1.5 GiB"
std::string readable(std::uint64_t bytes);

// The first reason why something was not cached.
class Complaint {
 public:
  void say(const std::string& text) {
    const std::lock_guard lock(mutex_);
    if (text_.empty()) text_ = text;
  }
  std::string text() const {
    const std::lock_guard lock(mutex_);
    return text_;
  }

 private:
  mutable std::mutex mutex_;
  std::string text_;
};

}  // namespace flowos::feed::cache
