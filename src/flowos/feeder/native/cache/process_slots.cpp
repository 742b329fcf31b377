#include "cache/process_slots.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include "base/errors.h"
#include "base/unique_fd.h"
#include "cache/folder.h"
#include "cache/layout.h"

namespace flowos::feed::cache {
namespace {

constexpr off_t kAttaching = 0;  // the byte of the attaching process; those of the slots follow
constexpr std::string_view kNote =
    "A FlowOS cache of training data. Remove the whole folder, or nothing of it.\n";

// The files that hold our locks, for a forked child to close.
struct OpenFiles {
  std::mutex mutex;
  std::vector<int> files;
  std::atomic<std::uint32_t> forks{0};
};

OpenFiles& open_files() {
  static OpenFiles& all = *new OpenFiles;  // outlives whatever is destroyed at the end
  return all;
}

void before_fork() { open_files().mutex.lock(); }
void after_fork() { open_files().mutex.unlock(); }
void in_child() {
  OpenFiles& all = open_files();
  for (const int file : all.files) ::close(file);
  all.files.clear();
  ++all.forks;
  all.mutex.unlock();
}

void watch_forks_once() {
  static std::once_flag once;
  std::call_once(once, [] { ::pthread_atfork(before_fork, after_fork, in_child); });
}

struct flock lock_of(short type, off_t first, off_t bytes) {
  struct flock lock{};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = first;
  lock.l_len = bytes;
  return lock;
}

bool set_lock(int file, short type, off_t at) {
  struct flock lock = lock_of(type, at, 1);
  return ::fcntl(file, F_OFD_SETLK, &lock) == 0;
}

// Where the kernel does not say: they are, so that nothing is taken from them.
bool locked_by_others(int file, off_t first, off_t bytes) {
  struct flock lock = lock_of(F_WRLCK, first, bytes);
  return ::fcntl(file, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

std::uint32_t count_others(int file, std::uint32_t below) {
  std::uint32_t count = 0;
  for (std::uint32_t slot = 0; slot < below; ++slot) {
    count += locked_by_others(file, slot + 1, 1) ? 1 : 0;
  }
  return count;
}

}  // namespace

std::unique_ptr<Slots> Slots::open(const Folder& folder) {
  watch_forks_once();
  OpenFiles& all = open_files();
  const std::lock_guard lock(all.mutex);
  Descriptor file = open_file(folder, "slots", O_RDWR | O_CREAT);
  if (!file) {
    if (errno == ELOOP || errno == EISDIR || errno == ENXIO) {
      throw FeedError(folder.path + "/slots is not a regular file: remove it");
    }
    return nullptr;
  }
  struct flock any = lock_of(F_WRLCK, kAttaching, 1);
  if (::fcntl(file.get(), F_OFD_GETLK, &any) != 0) {
    const int error = errno;
    file = Descriptor();
    errno = error;
    return nullptr;
  }
  all.files.push_back(file.get());
  return std::make_unique<Slots>(file.release());
}

Slots::Slots(int file) : file_(file), forks_(open_files().forks) {
  struct stat status{};
  if (::fstat(file, &status) == 0 && status.st_size == 0 &&
      ::pwrite(file, kNote.data(), kNote.size(), 0) < 0) {
    errno = 0;  // it is for people only
  }
}

Slots::~Slots() {
  OpenFiles& all = open_files();
  const std::lock_guard lock(all.mutex);
  if (forked()) return;  // closed already, and its number may be another file's
  if (attached_) used_now();
  std::erase(all.files, file_);
  ::close(file_);
}

std::uint32_t Slots::count_in(const Folder& folder, std::uint32_t below) {
  const Descriptor file = open_file(folder, "slots", O_RDONLY);
  return file ? count_others(file.get(), std::min(below, kProcesses)) : 0;
}

bool Slots::lock_attaching(std::chrono::milliseconds max_wait) {
  const auto until = std::chrono::steady_clock::now() + max_wait;
  while (!set_lock(file_, F_WRLCK, kAttaching)) {
    if (std::chrono::steady_clock::now() >= until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

void Slots::used_now() const {
  if (::futimens(file_, nullptr) != 0) errno = 0;  // then it looks older than it is
}

void Slots::unlock_attaching() { set_lock(file_, F_UNLCK, kAttaching); }

bool Slots::current(const Folder& folder) const {
  struct stat ours{};
  struct stat there{};
  return ::fstat(file_, &ours) == 0 &&
         ::fstatat(folder.at.get(), "slots", &there, AT_SYMLINK_NOFOLLOW) == 0 &&
         ours.st_ino == there.st_ino && ours.st_dev == there.st_dev;
}

std::optional<std::uint32_t> Slots::take() {
  for (std::uint32_t slot = 0; slot < kProcesses; ++slot) {
    if (!set_lock(file_, F_WRLCK, slot + 1)) continue;
    attached_ = true;
    return slot;
  }
  return std::nullopt;
}

bool Slots::taken(std::uint32_t slot) const { return locked_by_others(file_, slot + 1, 1); }

bool Slots::alone() const { return !locked_by_others(file_, 1, kProcesses); }

std::uint32_t Slots::count(std::uint32_t below) const {
  return 1 + count_others(file_, std::min(below, kProcesses));
}

bool Slots::forked() const { return forks_ != open_files().forks; }

}  // namespace flowos::feed::cache
