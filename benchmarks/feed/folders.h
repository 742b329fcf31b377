#pragma once

#include <linux/fuse.h>
#include <sys/stat.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace flowos::bench {

// The kernel's numbers of files and folders that were looked up. Numbers of the underlying file
// system are given again to what is made later, which the kernel would take for what it has kept.
class Paths {
 public:
  // The same as long as the path is of the same file.
  std::uint64_t number_of(const std::string& path, ino_t file) {
    const std::lock_guard<std::mutex> guard(lock_);
    const auto [at, is_new] = known_.try_emplace(path, Known{file, 0});
    if (is_new || at->second.file != file) {
      paths_.push_back(&at->first);
      at->second = {file, FUSE_ROOT_ID + paths_.size()};
    }
    return at->second.number;
  }
  std::string path_of(std::uint64_t number) {
    if (number == FUSE_ROOT_ID) return ".";
    const std::lock_guard<std::mutex> guard(lock_);
    return *paths_.at(number - FUSE_ROOT_ID - 1);
  }

 private:
  struct Known {
    ino_t file;
    std::uint64_t number;
  };
  std::mutex lock_;
  std::unordered_map<std::string, Known> known_;
  std::vector<const std::string*> paths_;
};

struct Entry {
  std::string name;
  unsigned type;
  ino_t number;
};
using Entries = std::vector<Entry>;

// Entries of folders at the time they were opened.
class Listings {
 public:
  std::uint64_t keep(std::shared_ptr<const Entries> entries) {
    const std::lock_guard<std::mutex> guard(lock_);
    kept_[++last_] = std::move(entries);
    return last_;
  }
  std::shared_ptr<const Entries> at(std::uint64_t number) {
    const std::lock_guard<std::mutex> guard(lock_);
    return kept_.at(number);
  }
  void forget(std::uint64_t number) {
    const std::lock_guard<std::mutex> guard(lock_);
    kept_.erase(number);
  }

 private:
  std::mutex lock_;
  std::uint64_t last_ = 0;
  std::unordered_map<std::uint64_t, std::shared_ptr<const Entries>> kept_;
};

inline fuse_attr attributes_of(const struct stat& found) {
  fuse_attr reply{};
  reply.ino = found.st_ino;
  reply.size = static_cast<std::uint64_t>(found.st_size);
  reply.blocks = static_cast<std::uint64_t>(found.st_blocks);
  reply.atime = static_cast<std::uint64_t>(found.st_atim.tv_sec);
  reply.mtime = static_cast<std::uint64_t>(found.st_mtim.tv_sec);
  reply.ctime = static_cast<std::uint64_t>(found.st_ctim.tv_sec);
  reply.atimensec = static_cast<std::uint32_t>(found.st_atim.tv_nsec);
  reply.mtimensec = static_cast<std::uint32_t>(found.st_mtim.tv_nsec);
  reply.ctimensec = static_cast<std::uint32_t>(found.st_ctim.tv_nsec);
  reply.mode = found.st_mode;
  reply.nlink = static_cast<std::uint32_t>(found.st_nlink);
  reply.uid = found.st_uid;
  reply.gid = found.st_gid;
  reply.blksize = static_cast<std::uint32_t>(found.st_blksize);
  return reply;
}

}  // namespace flowos::bench
