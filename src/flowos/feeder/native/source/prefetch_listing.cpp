#include "source/prefetch_listing.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/parallel.h"
#include "base/source_file.h"
#include "base/unique_fd.h"
#include "cache/cache.h"
#include "catalog/catalog.h"

namespace flowos::feed {
namespace {

// Beyond it the time that a file takes is that of its bytes: nothing is gained by an early start.
constexpr std::uint64_t kLargeBytes = 4 << 20;
constexpr std::size_t kMaxWaiting = 1 << 16;

// Samples of a folder are in byte order of their paths.
std::optional<std::uint64_t> number_of(const Catalog& catalog, const std::string& path) {
  std::uint64_t first = 0;
  std::uint64_t count = catalog.count();
  while (count > 0) {
    const std::uint64_t half = count / 2;
    if (catalog.file(first + half) < path) {
      first += half + 1;
      count -= half + 1;
    } else {
      count = half;
    }
  }
  const bool is_there = first < catalog.count() && catalog.file(first) == path;
  return is_there ? std::optional(first) : std::nullopt;
}

}  // namespace

FolderPrefetcher::FolderPrefetcher(const std::string& root, unsigned threads,
                                   std::uint64_t max_bytes)
    : root_(open_root(root)), max_threads_(threads), room_(max_bytes) {}

void FolderPrefetcher::found(std::string_view folder, std::string_view names) {
  const std::lock_guard lock(mutex_);
  while (!names.empty() && !stopped_ && waiting_.size() < kMaxWaiting) {
    const std::string_view name = names.substr(0, names.find('\0'));
    names.remove_prefix(name.size() + 1);
    std::string& path = waiting_.emplace_back(folder);
    if (!folder.empty()) path += '/';
    path += name;
    if (threads_.size() < max_threads_) {
      try {
        threads_.emplace_back([this] { work(); });
      } catch (const std::system_error&) {
        stop();  // the limit of threads: the feeder will need those that there are
      }
    }
    changed_.notify_one();
  }
}

void FolderPrefetcher::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopped_ || !waiting_.empty(); });
    if (stopped_) return;
    const std::string path = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    std::optional<Held> held;
    try {
      held = read(path);
    } catch (const std::exception&) {
      held.reset();  // no memory
    }
    lock.lock();
    if (!held) continue;
    bytes_ += held->size;
    ++samples_;
    held_.push_back(*std::move(held));
  }
}

std::optional<FolderPrefetcher::Held> FolderPrefetcher::read(const std::string& path) {
  const Descriptor file = open_below(root_.get(), path, O_RDONLY);
  struct stat state{};
  if (!file || ::fstat(file.get(), &state) != 0 || !S_ISREG(state.st_mode)) return std::nullopt;
  const auto size = static_cast<std::uint64_t>(state.st_size);
  if (size > kLargeBytes || !take_room(size)) return std::nullopt;
  Held held{path, std::make_unique_for_overwrite<std::byte[]>(size), size};
  if (!read_at(file.get(), held.bytes.get(), size, 0)) return std::nullopt;
  return held;
}

// Once a file finds no room, nothing more is read: others would be opened for nothing.
bool FolderPrefetcher::take_room(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (bytes > room_) {
    stop();
    return false;
  }
  room_ -= bytes;
  return true;
}

void FolderPrefetcher::stop() {
  stopped_ = true;
  waiting_.clear();
  changed_.notify_all();
}

void FolderPrefetcher::join() {
  std::vector<std::thread> ending;
  {
    const std::lock_guard lock(mutex_);
    stop();
    ending.swap(threads_);
  }
  for (std::thread& thread : ending) thread.join();
}

void FolderPrefetcher::end() {
  join();
  held_.clear();
}

void FolderPrefetcher::keep(const Catalog& catalog, Cache& cache) {
  join();
  for_each_in_threads(held_.size(), max_threads_, [&](std::size_t i) {
    const Held& held = held_[i];
    const std::optional<std::uint64_t> sample = number_of(catalog, held.path);
    if (!sample || cache.claim(*sample) != Cache::Claim::ours) return;
    cache.publish(*sample, {held.bytes.get(), held.size});
  });
  held_.clear();
}

std::uint64_t FolderPrefetcher::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

std::uint64_t FolderPrefetcher::samples() const {
  const std::lock_guard lock(mutex_);
  return samples_;
}

}  // namespace flowos::feed
