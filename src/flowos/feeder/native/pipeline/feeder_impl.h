#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "base/errors.h"
#include "cache/cache.h"
#include "catalog/catalog.h"
#include "catalog/order.h"
#include "decode/decoder.h"
#include "peers/peers.h"
#include "pipeline/batch_builder.h"
#include "pipeline/batch_window.h"
#include "pipeline/concurrency.h"
#include "pipeline/feeder.h"
#include "pipeline/stage_times.h"
#include "source/files.h"

namespace flowos::feed {

// Threads that wait for samples which other threads or processes fetch.
inline constexpr std::uint32_t kMaxElsewhere = 64;

// A sample that is ours to put into the cache: published or, whatever happens, abandoned.
class Owned {
 public:
  Owned() = default;
  Owned(Cache* cache, std::uint64_t sample) : cache_(cache), sample_(sample) {}
  Owned(Owned&& other) noexcept
      : cache_(std::exchange(other.cache_, nullptr)), sample_(other.sample_) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(cache_, other.cache_);
    std::swap(sample_, other.sample_);
    return *this;
  }
  ~Owned() {
    if (cache_ != nullptr) cache_->abandon(sample_);
  }

  explicit operator bool() const { return cache_ != nullptr; }
  // Whether it was kept.
  bool publish(std::span<const std::byte> bytes) {
    Cache* cache = std::exchange(cache_, nullptr);
    return cache != nullptr && cache->publish(sample_, bytes);
  }

 private:
  Cache* cache_ = nullptr;
  std::uint64_t sample_ = 0;
};

// One sample of one batch, to be brought.
struct Slot {
  std::shared_ptr<BatchBuilder> builder;
  std::uint32_t number = 0;
  std::uint64_t sample = 0;
};

// A slot whose bytes Python or a prefetch brings.
struct Request {
  Slot slot;
  Owned owned;
  Nanoseconds since;  // it waits to be pulled; once it was, to be answered
};

// What was pushed and is still to be decoded, or only cached.
struct Arrival {
  Request request;
  std::unique_ptr<std::byte[]> memory;  // null: the bytes lie in the batch
  std::span<const std::byte> bytes;
  Nanoseconds since = 0;  // it waits for a thread
};

// The threads are managed as the kernel manages those of its workqueues: only so many are busy at
// a time (claiming, reading the cache, decoding) as helps; one that goes to wait for the source
// makes place for another, up to the depth that feedback allows. So a few threads serve what is
// cached, and as many as the link needs bring what is not.
struct Feeder::Inside {
  struct Worker {
    explicit Worker(ThreadTimes& its_times) : times(its_times) {}

    ThreadTimes& times;
    bool busy = false;
    std::uint64_t bytes_while_busy = 0;  // what it has just read without waiting for the source
    std::uint32_t source_reads = 0;
    std::unique_ptr<std::byte[]> memory;
    std::size_t capacity = 0;

    std::byte* buffer(std::size_t bytes);
  };
  using Errand = std::variant<std::monostate, Slot, Arrival>;
  class Away;

  Inside(const FeederSettings& given, std::shared_ptr<const Catalog> its_catalog,
         std::shared_ptr<const Files> its_files, std::shared_ptr<Cache> its_cache,
         std::shared_ptr<const Decoder> its_decoder);
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  ~Inside() { close(); }

  // feeder.cpp: the consumer
  void seek(std::uint64_t epoch, std::uint64_t start);
  std::optional<std::shared_ptr<const Batch>> next(std::chrono::milliseconds max_wait);
  void check_first() const;  // locked
  void close();
  FeederStats stats() const;

  // workers.cpp: the threads and their permits. Where marked so, the lock is held.
  [[nodiscard]] bool another();  // locked
  void wake(bool wanted) {
    if (wanted) work.notify_one();
  }
  void spawn();  // locked
  void run(ThreadTimes& times);
  Errand take(Worker& self);
  void look();              // locked: at what the consumer waits for, wherever it may have changed
  bool has_errand() const;  // locked
  bool may_claim() const;   // locked
  void note_source_read(std::uint64_t bytes, Nanoseconds now);  // locked
  void note_sleep(bool slept);                                  // locked
  // times: of the thread, where it is one of ours.
  void arrived(const Slot& slot, ThreadTimes* times);
  void failed(const Slot& slot, const std::string& why, ThreadTimes* times);
  void settle(const std::shared_ptr<BatchBuilder>& builder, ThreadTimes* times);
  void break_down(const std::string& why);

  // fetch.cpp: one sample
  enum class Found { delivered, missing, unwanted };
  void fetch(Worker& self, const Slot& slot);
  Found from_cache(Worker& self, const Slot& slot, Owned& owned);
  bool read_cached(Worker& self, const Slot& slot, const Cache::Seen& seen);
  bool wait_for_others(Worker& self, const Slot& slot);
  void from_source(Worker& self, const Slot& slot, Owned owned);
  bool wait_for_room(Worker& self, const Slot& slot, std::unique_lock<std::mutex>& lock);
  std::byte* place(const Slot& slot, std::size_t bytes);
  std::byte* buffer_for(Worker& self, const Slot& slot, std::size_t bytes);
  void deliver(Worker& self, const Slot& slot, std::span<const std::byte> bytes);
  void finish(Worker& self, Arrival arrival);
  SampleError about(const Slot& slot, const std::string& what) const;

  // fetch_peer.cpp: reads from other nodes, and writes to the cache
  bool from_peer(Worker& self, const Slot& slot, Owned& owned);
  bool make_room(const Slot& slot);
  void keep(Worker& self, const Slot& slot, Owned& owned, std::span<const std::byte> bytes);
  void note_kept(const Slot& slot);

  // tickets.cpp: bytes that Python or a prefetch brings
  void hand_out(const Worker& self, const Slot& slot, Owned owned);
  std::vector<Ticket> pull(std::size_t max_tickets);
  void push(std::uint64_t id, std::span<const std::byte> bytes);
  void fail(std::uint64_t id, const std::string& why);
  // It has ended, with so many samples: one, or none.
  std::optional<Request> withdraw(std::uint64_t id, std::uint64_t samples, std::uint64_t bytes);
  std::optional<Arrival> accept(Request request, std::span<const std::byte> bytes);
  bool may_pull() const;  // locked

  // stage_stats.cpp
  void add_stages(FeederStats& stats, Nanoseconds now) const;  // locked

  const FeederSettings settings;
  const std::shared_ptr<const Catalog> catalog;
  const std::shared_ptr<const Files> files;
  const std::shared_ptr<Cache> cache;
  const std::shared_ptr<const Decoder> decoder;
  const Order order;
  const std::unique_ptr<Peers> peers;
  const std::size_t each;  // bytes that every sample takes in a batch; 0: as many as it has
  Sizes sizes;

  mutable std::mutex mutex;       // guards all that follows
  std::condition_variable work;   // for idle threads: an errand, and a place among the busy
  std::condition_variable room;   // for the holder of a slot: it may read from the source
  std::condition_variable ready;  // for the consumer
  std::condition_variable
      outgoing;          // for Python threads that pull: a request, and a read may begin
  bool started = false;  // it is known where to begin: by seek() or the first request for a batch
  bool closed = false;
  std::string broken;  // why nothing more will come
  BatchWindow window;
  Depth source, cached;
  // Reads of the source put their thread to sleep, as far as the last ones tell. Where they do not
  // (files in the page cache) they are work like any other, and few threads do it.
  bool source_sleeps = true;
  double sleeping_share = 1.0;
  double shared_at = 0.0;  // when this process's part of the node's depth was looked up last
  std::uint32_t busy = 0, in_flight = 0, elsewhere = 0, idle = 0;
  bool waking = false;  // one of the idle is being woken
  std::size_t max_threads;
  std::vector<std::thread> threads;
  std::vector<std::unique_ptr<ThreadTimes>> times;  // of each, also after its end
  std::deque<Request> requests;
  std::unordered_map<std::uint64_t, Request> pulled;
  std::uint64_t next_id = 1;
  std::deque<Arrival> arrivals;
  std::uint64_t batches = 0, waits = 0, skipped = 0, replaced = 0;
  std::uint32_t consumers = 0;  // that wait for a batch
  std::uint32_t in_room = 0;    // of the busy, those that wait for room
  Waits consumer_waits;
  UnderWay outside;  // reads that keep no thread at work
  ThreadTimes::Count pushed, handed_over;
  Nanoseconds settling = 0;  // that batches were put together
  // Before they were pulled, before a thread took what was pushed, before they were taken.
  Nanoseconds requests_waited = 0, arrivals_waited = 0, ready_waited = 0;
  bool waiting = false;  // the batch that is asked for now has been counted as waited for
};

// While a thread waits for something outside it is counted as being there, and is not busy.
class Feeder::Inside::Away {
 public:
  // Gives the lock back.
  Away(Inside& inside, Worker& self, std::uint32_t& there, bool waits,
       std::unique_lock<std::mutex>& lock);
  Away(const Away&) = delete;
  Away& operator=(const Away&) = delete;
  ~Away();

  bool waits() const { return waits_; }
  // It brought so many bytes from the source.
  void brought(std::uint64_t bytes) { bytes_ = bytes; }
  void slept(bool slept) { slept_ = slept; }

 private:
  Inside& inside_;
  ThreadTimes& times_;
  std::uint32_t& there_;
  bool waits_;
  std::uint64_t bytes_ = 0;
  std::optional<bool> slept_;
};

}  // namespace flowos::feed
