#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/unique_fd.h"

namespace flowos::feed {

class Cache;
class Catalog;

// Reads files while the folder that they lie in is still being listed. Which one is requested when
// is known only at the end of the listing; that a cache wants them all is known at once, and so the
// link does not idle meanwhile.
//
// What cannot be read, or is large, is left to the feeder, which says what is wrong with it.
class FolderPrefetcher {
 public:
  // Holds at most so many bytes in memory. Throws FeedError if there is no such folder.
  FolderPrefetcher(const std::string& root, unsigned threads, std::uint64_t max_bytes);
  ~FolderPrefetcher() { end(); }
  FolderPrefetcher(const FolderPrefetcher&) = delete;
  FolderPrefetcher& operator=(const FolderPrefetcher&) = delete;

  // Files of a folder below the root: their names, each ended by a zero. From any thread.
  void found(std::string_view folder, std::string_view names);
  // Ends the reading; what was read goes into the cache of this catalog's samples.
  void keep(const Catalog& catalog, Cache& cache);
  // Stops reading. What was read and not cached is dropped.
  void end();

  // What was read of the source, in all.
  std::uint64_t bytes() const;
  std::uint64_t samples() const;

 private:
  struct Held {
    std::string path;
    std::unique_ptr<std::byte[]> bytes;
    std::size_t size;
  };

  void work();
  std::optional<Held> read(const std::string& path);
  bool take_room(std::uint64_t bytes);
  void stop();  // locked
  void join();

  const Descriptor root_;
  const unsigned max_threads_;

  mutable std::mutex mutex_;  // guards all that follows
  std::condition_variable changed_;
  std::deque<std::string> waiting_;  // paths
  std::vector<std::thread> threads_;
  std::vector<Held> held_;
  std::uint64_t room_;  // bytes that may still be read
  bool stopped_ = false;
  std::uint64_t bytes_ = 0, samples_ = 0;
};

}  // namespace flowos::feed
