#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include "cache/folder.h"

namespace flowos::feed::cache {

// The attached processes: a file of which each process has one byte locked, by a lock that belongs
// to the opened file (F_OFD_SETLK). The kernel lets it go when the process ends, however it ends.
//
// A forked child would share it and so keep its dead parent alive: in a child the file is closed
// at once, and forked() says so.
class Slots {
 public:
  // Null with errno: it cannot be opened for writing, or the file system has no locks.
  static std::unique_ptr<Slots> open(const Folder& folder);
  // Processes attached to a cache that this one is not attached to.
  static std::uint32_t count_in(const Folder& folder, std::uint32_t below);

  explicit Slots(int file);
  ~Slots();
  Slots(const Slots&) = delete;
  Slots& operator=(const Slots&) = delete;

  // One process at a time attaches. False: others do, all that time.
  bool lock_attaching(std::chrono::milliseconds max_wait);
  void unlock_attaching();
  // The file is still the one that the next process will find.
  bool current(const Folder& folder) const;

  // Notes, as the file's time, that the cache is in use now.
  void used_now() const;

  // The lowest that is free, from now on ours; nothing: all are taken.
  std::optional<std::uint32_t> take();
  // By another process (or another attachment of this one).
  bool taken(std::uint32_t slot) const;
  bool alone() const;
  // With this one.
  std::uint32_t count(std::uint32_t below) const;
  bool forked() const;

 private:
  int file_;
  bool attached_ = false;
  std::uint32_t forks_;  // of this process's line when the file was opened
};

}  // namespace flowos::feed::cache
