#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/progress.h"

namespace flowos::feed {

// What is known of a cache without attaching to it.
struct CacheState {
  std::uint64_t samples = 0;     // of the data set
  std::uint64_t cached = 0;      // of these are here
  std::uint64_t bytes = 0;       // they take so much
  std::uint64_t unverified = 0;  // written before the last start of the machine, not read since
  std::uint32_t processes = 0;   // attached now
};

// Samples on the storage of this node, shared by its processes without a daemon.
//
// A folder, mode 0700: `index`, mapped by all (a header, then 32 bytes per sample: state and
// owner, segment, place, length, crc32c); `slots`, of which each process locks one byte (OFD lock:
// a dead process's lock is gone, whatever killed it); and segments `N.seg`, fallocated, with
// samples in slots of 4 KiB. A sample is written, then published by one atomic store, so a kill at
// any moment loses at most what was not published. Nothing is synced: after a restart of the
// machine every entry counts as unverified until its crc32c was seen right.
class Cache {
 public:
  enum class Claim {
    ready,   // here: read it
    ours,    // fetch it, then publish or abandon it
    theirs,  // another thread or process fetches it: wait
    full,    // not here, and no room: fetch it for yourself; nothing to publish or abandon
  };

  // What the index said of a sample at one moment. What is kept is read by it without a second
  // look: each look costs a system call, as no program says when it takes SIGBUS (keep_guard).
  struct Seen {
    std::uint64_t word = 0;
    std::uint64_t length = 0;  // bytes; this and the rest: where it is kept
    std::uint32_t segment = 0, first = 0, crc = 0;
  };

  struct Limits {
    std::uint64_t max_bytes = 0;              // 0: what the file system has
    std::uint64_t min_free_bytes = 1 << 30;   // stays free on the file system
    std::uint64_t segment_bytes = 256 << 20;  // at most; the first are smaller
    // Of caches of other data sets, as FOLDER/NAME/samples. Where the file system has no room,
    // those that no process uses are removed, whole, the one whose last use is longest ago first.
    std::string neighbours = "";
  };

  // Attaches; makes it when it is not there, for a data set of so many samples with this
  // fingerprint. What no entry refers to is removed. Where it can only be read, what is in it is
  // read. Throws FeedError if it is unusable (not ours, read-only and of another data set, in use
  // for another one, no index fits): feed without it. A forked child must make one of its own: to
  // it, all but length() is a FeedError.
  Cache(const std::string& folder, std::uint64_t fingerprint, std::uint64_t samples,
        const Limits& limits);
  ~Cache();
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

  // Safe from all threads of all processes.
  Claim claim(std::uint64_t sample);
  Claim claim(std::uint64_t sample, Seen& seen);
  bool has(std::uint64_t sample) const;
  // Nothing: it is not here.
  std::optional<Seen> find(std::uint64_t sample) const;
  // Of a ready sample.
  std::uint64_t length(std::uint64_t sample) const;
  // All of a sample, into as many bytes as length() or `seen` said. False: they were damaged or are
  // gone, or it has become another length meanwhile; the sample is then ours, as if claimed (where
  // nothing can be cached it stays unclaimed, and to publish or abandon it does nothing).
  bool read(std::uint64_t sample, std::span<std::byte> into);
  bool read(std::uint64_t sample, Seen seen, std::span<std::byte> into);
  // After `ours`: keeps the bytes, or not where there is no room (then later claims say full).
  // Nothing happens where the sample is not ours. Whether they were kept.
  bool publish(std::uint64_t sample, std::span<const std::byte> bytes);
  void abandon(std::uint64_t sample);
  // After `theirs`: until it is published, abandoned, or its owner is dead; then claim again.
  void wait(std::uint64_t sample, std::chrono::milliseconds max_wait) const;
  // Gives its room back (punched out); only for a ready sample that is not needed soon.
  void drop(std::uint64_t sample);

  // The share of `max_reads` source reads in flight on this node that this process may have: equal
  // parts for all processes attached.
  std::uint32_t part_of(std::uint32_t max_reads) const;
  // Of the data set that it was attached for.
  std::uint64_t fingerprint() const;
  // Once, the first reason why something was not cached; empty: all was.
  std::string complaint() const;
  std::uint64_t damaged() const;        // reads that did not find what was published
  std::uint64_t stolen() const;         // claims taken over from dead processes
  std::uint64_t evicted_bytes() const;  // of other data sets, removed to make room
  // Samples of another list that were removed when this process attached.
  std::uint64_t replaced() const;

  // Removes the neighbour that was not used for longest; the bytes freed, 0: there is none unused.
  static std::uint64_t evict_oldest(const std::string& neighbours, const std::string& mine);

  // Throws FeedError if there is no cache.
  static CacheState state_of(const std::string& folder);
  // Every cached sample is read and checked, damaged ones are forgotten: how many were. `progress`
  // counts all samples of the data set. Throws FeedError if there is no cache, or it was stopped.
  static std::uint64_t verify(const std::string& folder, Progress& progress);
  // Removes it; returns the bytes freed. Throws FeedError if a process uses it.
  static std::uint64_t clear(const std::string& folder);

 private:
  struct Inside;
  std::unique_ptr<Inside> inside_;
};

}  // namespace flowos::feed
