#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cache/cache.h"
#include "catalog/order.h"
#include "decode/decoder.h"
#include "peers/settings.h"
#include "pipeline/batch.h"
#include "source/files.h"

namespace flowos::feed {

enum class OnError {
  error,    // next() raises it
  skip,     // the batch is smaller; counted, and an error after `max_skipped`
  replace,  // another sample of the batch takes its place; counted likewise
};

struct FeederSettings {
  Share share;  // its start is set by seek()
  std::uint64_t seed = 0;
  bool shuffle = true;
  std::uint64_t record_bytes = 0;  // samples of equal size, one after the other; 0: as they come
  std::uint64_t memory_bytes = 1ULL << 30;  // for batches that wait to be taken
  std::uint32_t max_in_flight = 256;        // reads of the source, on this node
  std::uint64_t epochs_ahead = 1;           // are read ahead after the one that is asked for
  OnError on_error = OnError::error;
  std::uint64_t max_skipped = 1000;
  std::optional<PeerSettings> peers;  // of a run on several nodes; they need a cache
};

// What one stage did. Times are sums over samples and threads: divided by the time that has passed
// they are how many were in it, or waited before it, on average.
struct StageStats {
  double seconds = 0.0;                  // of its samples, those that are under way included
  double working_seconds = 0.0;          // of these, that it kept a thread at work
  double queued_seconds = 0.0;           // of samples before it
  std::uint64_t samples = 0, bytes = 0;  // that are through it; bytes: as they came to it
};

struct FeederStats {
  std::uint64_t source_bytes = 0, cache_bytes = 0, peer_bytes = 0;
  std::uint64_t source_samples = 0, cache_samples = 0, peer_samples = 0;
  std::uint64_t batches = 0;              // handed over
  std::uint64_t waits = 0;                // of these were not ready when they were asked for
  double waited_seconds = 0.0;            // by the consumer, in all
  double waited_for_reads_seconds = 0.0;  // of these, while a thread had nothing to do
  double consumer_seconds = 0.0;          // since the first request, while it did not wait
  StageStats fetch;                       // from the source, the cache or another node
  StageStats decode, cache_write;
  StageStats hand_over;  // a batch is put together, then waits to be taken
  std::uint64_t skipped = 0, replaced = 0;
  std::uint64_t damaged = 0, stolen = 0;  // see Cache
  std::uint32_t in_flight = 0;            // reads of the source under way now
  std::uint32_t depth = 0;                // how many feedback allows
  std::uint32_t ready = 0;                // batches that wait to be taken
  std::string complaint;                  // of the cache, or of another node; empty: none
};

// Order -> fetch -> batch, ahead of the consumer, in threads of its own.
//
// A sample is handed over as soon as it is there; writing it to the cache is a by-product. How
// many reads of the source are in flight is found by feedback: more while that brings more bytes
// per second, fewer when only latency grows. Batches come in order. After the last batch of an
// epoch the next epoch's are prepared, and no more until that is sought.
// Closing (and destruction) ends all threads; a read that hangs in the kernel is waited for.
class Feeder {
 public:
  // files: null where Python pulls tickets and pushes bytes. cache, decoder: may be null.
  // names: for complaints.
  Feeder(const FeederSettings& settings, std::shared_ptr<const Catalog> catalog,
         std::shared_ptr<const Files> files, std::shared_ptr<Cache> cache,
         std::shared_ptr<const Decoder> decoder);
  ~Feeder();
  Feeder(const Feeder&) = delete;
  Feeder& operator=(const Feeder&) = delete;

  // What next() gives from here on: the batches of this epoch from position `start`. Costs nothing
  // where this is what comes next anyway; else what was prepared is thrown away.
  void seek(std::uint64_t epoch, std::uint64_t start);
  // The next batch; null at the end of the epoch, until seek(), and when closed. Waits.
  // Throws SampleError again and again, until seek() tries once more; FeedError. The memory
  // is the consumer's until it lets go; then it is used again.
  std::shared_ptr<const Batch> next();
  // Nothing: it was not ready within this time.
  std::optional<std::shared_ptr<const Batch>> next_within(std::chrono::milliseconds max_wait);
  // Ends next() and pull(), also of other threads, with nothing; may be called from any thread.
  void close();
  bool closed() const;
  FeederStats stats() const;

  // For sources that native code cannot read: tickets are pulled, bytes are pushed back.
  struct Ticket {
    std::uint64_t id;
    std::uint64_t sample;
  };
  // Waits for one at least; at most `max_tickets`. None: closed.
  std::vector<Ticket> pull(std::size_t max_tickets);
  void push(std::uint64_t id, std::span<const std::byte> bytes);
  void fail(std::uint64_t id, const std::string& why);

 private:
  struct Inside;
  Inside& inside() const;

  std::uint32_t forks_;  // behind the process that created it
  std::unique_ptr<Inside> inside_;
};

}  // namespace flowos::feed
