// Reading during a listing: each file once, within its memory, without blocking the listing.

#include "source/prefetch_listing.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "base/errors.h"
#include "base/progress.h"
#include "cache/cache.h"
#include "catalog/catalog.h"
#include "check.h"
#include "pipeline/batch.h"
#include "pipeline/feeder.h"
#include "source/files.h"
#include "source_tools.h"

namespace {

std::atomic<int> listings_until_failure = 1 << 30;
std::mutex opened_mutex;
std::map<std::string, int> opened;  // how often each file was

}  // namespace

// In the place of glibc's: a server that lists slowly, or fails.
extern "C" ssize_t getdents64(int folder, void* buffer, size_t bytes) {
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  if (listings_until_failure-- == 0) {
    errno = EIO;
    return -1;
  }
  return static_cast<ssize_t>(::syscall(SYS_getdents64, folder, buffer, bytes));
}

// Likewise: counts opens.
extern "C" int openat(int folder, const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  if ((flags & O_DIRECTORY) == 0) {
    const std::lock_guard lock(opened_mutex);
    ++opened[path];
  }
  return static_cast<int>(::syscall(SYS_openat, folder, path, flags, mode));
}

namespace {

using flowos::feed::Cache;
using flowos::feed::Catalog;
using flowos::feed::Feeder;
using flowos::feed::FeedError;
using flowos::feed::Files;
using flowos::feed::FolderPrefetcher;
using flowos::feed::Progress;
using source_tools::Folder;
using source_tools::says;
using source_tools::shared;
using source_tools::told;

constexpr int kFolders = 24, kEach = 8;

std::string content(const std::string& name) {
  std::string bytes;
  while (bytes.size() < 100 + 40 * name.size() + std::hash<std::string>()(name) % 3000) {
    bytes += name;
  }
  return bytes;
}

void write_samples(const Folder& data) {
  for (int folder = 0; folder < kFolders; ++folder) {
    for (int number = 0; number < kEach; ++number) {
      const std::string name = "c" + std::to_string(folder) + "/" + std::to_string(number);
      data.write(name, content(name));
    }
  }
}

std::shared_ptr<const Catalog> listed(const Folder& data, FolderPrefetcher& prefetcher) {
  Progress progress;
  return shared(flowos::feed::list_folder(
      data.path(), 2, progress, [&prefetcher](std::string_view folder, std::string_view names) {
        prefetcher.found(folder, names);
      }));
}

std::shared_ptr<Cache> cache_of(const Folder& kept, const Catalog& catalog) {
  return std::make_shared<Cache>(kept.at("cache"), catalog.cache_key(), catalog.count(),
                                 Cache::Limits{.segment_bytes = 1 << 20});
}

// An epoch, every byte of it compared; how many of its samples came from the source.
std::uint64_t check_epoch(const Folder& data, const std::shared_ptr<const Catalog>& catalog,
                          const std::shared_ptr<Cache>& cache) {
  flowos::feed::FeederSettings settings;
  settings.share.batch_size = 16;
  Feeder feeder(settings, catalog, std::make_shared<const Files>(data.path(), catalog), cache,
                nullptr);
  feeder.seek(0, 0);
  std::uint64_t samples = 0;
  while (const auto batch = feeder.next()) {
    for (std::size_t slot = 0; slot < batch->samples.size(); ++slot, ++samples) {
      const std::string name = catalog->name(static_cast<std::uint64_t>(batch->samples[slot]));
      const auto* bytes = reinterpret_cast<const char*>(batch->arena.data() + batch->offsets[slot]);
      CHECK(std::string(bytes, static_cast<std::size_t>(batch->lengths[slot])) == content(name));
    }
  }
  CHECK(samples == catalog->count());
  feeder.close();
  return feeder.stats().source_samples;
}

void every_file_is_read_once_whether_prefetched_or_not() {
  const Folder data;
  const Folder kept;
  write_samples(data);
  opened.clear();
  FolderPrefetcher prefetcher(data.path(), 4, 1 << 20);
  const auto catalog = listed(data, prefetcher);
  const auto cache = cache_of(kept, *catalog);
  prefetcher.keep(*catalog, *cache);
  CHECK(prefetcher.samples() > 0 && prefetcher.bytes() > prefetcher.samples() * 100);
  CHECK(check_epoch(data, catalog, cache) == catalog->count() - prefetcher.samples());
  for (std::uint64_t sample = 0; sample < catalog->count(); ++sample) {
    CHECK(opened[catalog->name(sample)] == 1);
  }
}

void no_more_is_held_than_there_is_room_for() {
  const Folder data;
  const Folder kept;
  write_samples(data);
  FolderPrefetcher prefetcher(data.path(), 4, 10'000);
  const auto catalog = listed(data, prefetcher);
  const auto cache = cache_of(kept, *catalog);
  prefetcher.keep(*catalog, *cache);
  CHECK(prefetcher.samples() > 0 && prefetcher.bytes() <= 10'000);
  CHECK(check_epoch(data, catalog, cache) == catalog->count() - prefetcher.samples());
}

void a_cache_that_is_full_is_left_so_and_the_rest_read_through() {
  const Folder data;
  const Folder kept;
  write_samples(data);
  FolderPrefetcher prefetcher(data.path(), 4, 1 << 20);
  const auto catalog = listed(data, prefetcher);
  const auto cache =
      std::make_shared<Cache>(kept.at("cache"), catalog->cache_key(), catalog->count(),
                              Cache::Limits{.max_bytes = 64 << 10, .segment_bytes = 16 << 10});
  prefetcher.keep(*catalog, *cache);
  CHECK(check_epoch(data, catalog, cache) > 0);
}

void what_is_large_or_cannot_be_read_is_left_to_the_feeder() {
  const Folder data;
  data.write("a/small", content("a/small"));
  data.write("a/large", "");
  std::filesystem::resize_file(data.at("a/large"), 5 << 20);
  data.link("nowhere", "a/gone");
  FolderPrefetcher prefetcher(data.path(), 4, 1 << 30);
  const auto catalog = listed(data, prefetcher);
  const Folder kept;
  const auto cache = cache_of(kept, *catalog);
  while (prefetcher.samples() == 0) std::this_thread::yield();
  prefetcher.keep(*catalog, *cache);
  CHECK(catalog->count() == 3 && prefetcher.samples() == 1);
  CHECK(!cache->has(0) && !cache->has(1) && cache->has(2));
}

void a_listing_that_fails_ends_the_reading() {
  const Folder data;
  write_samples(data);
  FolderPrefetcher prefetcher(data.path(), 4, 1 << 20);
  listings_until_failure = 20;
  const std::string line = told<FeedError>([&] { listed(data, prefetcher); });
  CHECK(says(line, "cannot list the folder") && says(line, "Input/output error"));
  prefetcher.end();
  const std::uint64_t read = prefetcher.samples();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK(prefetcher.samples() == read);
  prefetcher.found("c0", std::string("1\0", 2));
  CHECK(prefetcher.samples() == read);
}

void no_folder_is_told() {
  const Folder data;
  const std::string line =
      told<FeedError>([&] { const FolderPrefetcher prefetcher(data.at("none"), 4, 1); });
  CHECK(says(line, "none: No such file or directory"));
}

}  // namespace

int main() {
  every_file_is_read_once_whether_prefetched_or_not();
  no_more_is_held_than_there_is_room_for();
  a_cache_that_is_full_is_left_so_and_the_rest_read_through();
  what_is_large_or_cannot_be_read_is_left_to_the_feeder();
  a_listing_that_fails_ends_the_reading();
  no_folder_is_told();
}
