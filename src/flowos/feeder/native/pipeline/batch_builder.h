#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "catalog/order.h"
#include "pipeline/batch.h"
#include "pipeline/feeder.h"
#include "pipeline/stage_times.h"

namespace flowos::feed {

// A batch in the making. Many threads fill it, each its own slots, in three steps: place, write,
// arrived (or failed). To which of them these say true, that one was the last: it sees all that the
// others wrote, and settles.
class BatchBuilder {
 public:
  // Which batch it is.
  struct Plan {
    std::uint64_t epoch = 0;
    Share share;
    std::uint64_t number = 0;
  };
  // What became of samples that could not be had.
  struct Settled {
    std::uint64_t skipped = 0, replaced = 0;
    std::string why;  // of one of these
  };

  // Every sample takes `each` bytes, at fixed places; 0: as many as it has, in order of arrival, in
  // memory that is expected to suffice when it has `capacity` bytes. std::bad_alloc.
  void open(const Plan& plan, std::size_t each, std::size_t capacity);
  const Plan& plan() const { return plan_; }

  // Where the bytes of this slot belong. They stay there until this batch is used again.
  std::byte* place(std::uint32_t slot, std::uint64_t sample, std::size_t bytes);
  bool arrived() { return left_.fetch_sub(1, std::memory_order_acq_rel) == 1; }
  bool failed(std::uint32_t slot, std::string why);

  // Makes `batch` complete. Where the policy, or that no sample is left, makes it an error:
  // error().
  void settle(OnError policy);
  const Settled& settled() const { return settled_; }
  const std::string& error() const { return error_; }
  // Bytes that were given places so far.
  std::size_t filled() const { return filled_.load(std::memory_order_relaxed); }

  // Cancels it: what has not begun is skipped.
  void discard() { discarded_.store(true, std::memory_order_relaxed); }
  bool discarded() const { return discarded_.load(std::memory_order_relaxed); }

  // Forgets what lies outside the arena.
  void clear();

  Batch batch;
  // Guarded by the feeder's lock.
  bool ready = false;  // settled
  Nanoseconds ready_since = 0;

 private:
  struct Failure {
    std::uint32_t slot;
    std::string why;
  };

  std::byte* packed(std::size_t bytes);
  void leave_out();
  void stand_in();
  void gather();
  void note_places();

  Plan plan_;
  std::size_t each_ = 0;
  std::vector<std::byte*> places_;
  std::atomic<std::uint32_t> left_ = 0;
  std::atomic<std::size_t> filled_ = 0;
  std::atomic<bool> discarded_ = false;
  Settled settled_;
  std::string error_;

  std::mutex mutex_;  // guards the two below until the last one has arrived
  std::vector<Failure> failures_;
  std::vector<std::unique_ptr<std::byte[]>> spilled_;  // what found no room in the arena
  Arena outgrown_;  // the arena before gather(); others may still read what they wrote there
};

// Batches whose memory is free, to be used again: the last one first, as it is still in the CPU's
// caches. Outlives the feeder while a consumer holds a batch.
class Pool : public std::enable_shared_from_this<Pool> {
 public:
  // When its last holder releases it, it comes back here.
  std::shared_ptr<BatchBuilder> take();
  // How many to keep at most, and of what size: the memory of larger ones is given up.
  void keep(std::size_t batches, std::size_t bytes_each);

 private:
  void give(std::unique_ptr<BatchBuilder> builder);

  std::atomic<std::size_t> batches_ = 0, bytes_each_ = 0;
  std::mutex mutex_;
  std::vector<std::unique_ptr<BatchBuilder>> free_;
};

// How many bytes samples take in a packed batch, learnt from those that were placed.
class Sizes {
 public:
  static std::size_t taken(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

  void note(std::size_t bytes);
  void note_batch(std::size_t bytes);
  // What a batch of so many samples is expected to take; 0: nothing is known yet.
  std::size_t expected(std::uint32_t samples) const;
  // The memory to give it, so that it nearly always suffices.
  std::size_t capacity(std::uint32_t samples) const;

 private:
  std::atomic<std::uint64_t> bytes_ = 0, samples_ = 0, largest_batch_ = 0;
};

}  // namespace flowos::feed
