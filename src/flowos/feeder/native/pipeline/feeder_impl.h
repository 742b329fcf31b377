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
  void publish(std::span<const std::byte> bytes) {
    if (Cache* cache = std::exchange(cache_, nullptr)) cache->publish(sample_, bytes);
  }

 private:
  Cache* cache_ = nullptr;
  std::uint64_t sample_ = 0;
};

// One sample of one batch, to be brought.
struct Slot {
  std::shared_ptr<Pending> pending;
  std::uint32_t number = 0;
  std::uint64_t sample = 0;
};

// A slot whose bytes Python or a prefetch brings.
struct Request {
  Slot slot;
  Owned owned;
};

// What was pushed and is still to be decoded, or only cached.
struct Arrival {
  Request request;
  std::unique_ptr<std::byte[]> memory;  // null: the bytes lie in the batch
  std::span<const std::byte> bytes;
};

// The threads are managed as the kernel manages those of its workqueues: only so many are busy at
// a time (claiming, reading the cache, decoding) as helps; one that goes to wait for the source
// makes place for another, up to the depth that feedback allows. So a few threads serve what is
// cached, and as many as the link needs bring what is not.
struct Feeder::Inside {
  struct Worker {
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
  std::optional<std::shared_ptr<const Batch>> next(std::chrono::milliseconds most);
  void check_first() const;  // locked
  void close();
  FeederStats stats() const;

  // workers.cpp: the threads and their permits. Where marked so, the lock is held.
  [[nodiscard]] bool another();  // locked
  void wake(bool wanted) {
    if (wanted) work.notify_one();
  }
  void spawn();  // locked
  void run();
  Errand take(Worker& self);
  bool has_errand() const;                     // locked
  bool may_claim() const;                      // locked
  void note_source_read(std::uint64_t bytes);  // locked
  void note_sleep(bool slept);                 // locked
  void arrived(const Slot& slot);
  void failed(const Slot& slot, const std::string& why);
  void settle(const std::shared_ptr<Pending>& pending);
  void break_down(const std::string& why);

  // fetch.cpp: one sample
  enum class Found { delivered, missing, unwanted };
  void fetch(Worker& self, const Slot& slot);
  Found from_cache(Worker& self, const Slot& slot, Owned& owned);
  bool read_cached(Worker& self, const Slot& slot);
  bool wait_for_others(const Slot& slot);
  void from_source(Worker& self, const Slot& slot, Owned owned);
  std::byte* place(const Slot& slot, std::size_t bytes);
  std::byte* buffer_for(Worker& self, const Slot& slot, std::size_t bytes);
  void deliver(const Slot& slot, std::span<const std::byte> bytes);
  void finish(Arrival arrival);
  SampleError about(const Slot& slot, const std::string& what) const;

  // fetch_peer.cpp: reads from other nodes, and writes to the cache
  bool from_peer(Worker& self, const Slot& slot, Owned& owned);
  bool make_room(const Slot& slot);
  void keep(const Slot& slot, Owned& owned, std::span<const std::byte> bytes);
  void note_kept(const Slot& slot);

  // tickets.cpp: bytes that Python or a prefetch brings
  void hand_out(const Slot& slot, Owned owned);
  std::vector<Ticket> pull(std::size_t most);
  void push(std::uint64_t id, std::span<const std::byte> bytes);
  void fail(std::uint64_t id, const std::string& why);
  std::optional<Request> withdraw(std::uint64_t id);
  std::optional<Arrival> accept(Request request, std::span<const std::byte> bytes);
  bool may_pull() const;  // locked

  const FeederSettings settings;
  const std::shared_ptr<const Catalog> catalog;
  const std::shared_ptr<const Files> files;
  const std::shared_ptr<Cache> cache;
  const std::shared_ptr<const Decoder> decoder;
  const Order order;
  const std::unique_ptr<Peers> peers;
  const std::size_t each;  // bytes that every sample takes in a batch; 0: as many as it has
  Sizes sizes;

  struct Counters {
    std::atomic<std::uint64_t> source_bytes = 0, source_samples = 0;
    std::atomic<std::uint64_t> cache_bytes = 0, cache_samples = 0;
    std::atomic<std::uint64_t> peer_bytes = 0, peer_samples = 0;
  } counters;

  mutable std::mutex mutex;       // guards all that follows
  std::condition_variable work;   // for idle threads: an errand, and a place among the busy
  std::condition_variable room;   // for the holder of a slot: it may read from the source
  std::condition_variable ready;  // for the consumer
  std::condition_variable
      outgoing;          // for Python threads that pull: a request, and a read may begin
  bool started = false;  // it is known where to begin: by seek() or the first request for a batch
  bool closed = false;
  std::string broken;  // why nothing more will come
  Ring ring;
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
  std::deque<Request> requests;
  std::unordered_map<std::uint64_t, Request> pulled;
  std::uint64_t next_id = 1;
  std::deque<Arrival> arrivals;
  std::uint64_t batches = 0, waits = 0, skipped = 0, replaced = 0;
  double waited_seconds = 0.0;
  bool waiting = false;  // the batch that is asked for now has been counted as waited for
};

// Seconds of a clock that only goes forward.
double now_seconds();

// While a thread waits for something outside it is counted as being there, and is not busy.
class Feeder::Inside::Away {
 public:
  // Gives the lock back.
  Away(Inside& inside, std::uint32_t& there, bool waits, std::unique_lock<std::mutex>& lock);
  Away(const Away&) = delete;
  Away& operator=(const Away&) = delete;
  ~Away();

  bool waits() const { return waits_; }
  // It brought so many bytes from the source.
  void brought(std::uint64_t bytes) { bytes_ = bytes; }
  void slept(bool slept) { slept_ = slept; }

 private:
  Inside& inside_;
  std::uint32_t& there_;
  bool waits_;
  std::uint64_t bytes_ = 0;
  std::optional<bool> slept_;
};

}  // namespace flowos::feed
