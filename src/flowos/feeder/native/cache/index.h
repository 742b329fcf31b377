#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "cache/folder.h"
#include "cache/layout.h"

namespace flowos::feed::cache {

struct Guarded;

// Sees to it that SIGBUS comes to us first, whatever the program has set meanwhile (Python's
// faulthandler, PyTorch's loaders): to be called before a mapping is read. One system call.
void keep_guard();

// A file mapped for all processes. Where a page of it can no longer be had - the file was
// truncated, its disk fails, a copy-on-write file system is full - SIGBUS would end the process: a
// page of zeros, of this process only, takes its place, and lost() says so.
class Mapping {
 public:
  // shared: what is written goes to the file, for all to see; else it stays with this process.
  // Null data() with errno: it cannot be mapped.
  Mapping(int file, std::size_t bytes, bool shared);
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  std::byte* data() const { return data_; }
  bool lost() const;

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_;
  Guarded* guarded_ = nullptr;
};

// The file `index`, mapped.
class SharedIndex {
 public:
  // What the folder's index says that it is; nothing: there is none, or it is damaged or of
  // another version.
  static std::optional<Identity> identity_in(const Folder& folder);
  // Null: as above, or not to be opened so. Where it is not writable, changes stay with this
  // process.
  static std::unique_ptr<SharedIndex> open(const Folder& folder, bool writable);
  // A new and empty one; what was there is replaced, not changed, since others may have it mapped.
  // Throws NoRoom if there is no space, FeedError if it cannot be made for another reason.
  static std::unique_ptr<SharedIndex> make(const Folder& folder, std::uint64_t samples,
                                           std::uint64_t fingerprint);

  SharedIndex(int file, const Identity& identity, bool writable)
      : identity_(identity), mapping_(file, index_bytes(identity.samples), writable) {}

  const Identity& identity() const { return identity_; }
  std::uint64_t samples() const { return identity_.samples; }
  Header& header() const { return all().header; }
  std::atomic<std::uint32_t>& generation(std::uint32_t slot) const {
    return all().generations[slot];
  }
  SegmentRecord& record(std::uint32_t segment) const { return all().segments[segment % kSegments]; }
  Entry& entry(std::uint64_t sample) const {
    return reinterpret_cast<Entry*>(mapping_.data() + sizeof(Index))[sample];
  }
  bool mapped() const { return mapping_.data() != nullptr; }
  bool lost() const { return mapping_.lost(); }

 private:
  Index& all() const { return *reinterpret_cast<Index*>(mapping_.data()); }

  Identity identity_;
  Mapping mapping_;
};

}  // namespace flowos::feed::cache
