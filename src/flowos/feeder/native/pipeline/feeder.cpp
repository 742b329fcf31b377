#include "pipeline/feeder.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
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
#include <vector>

#include "base/errors.h"
#include "cache/cache.h"
#include "catalog/catalog.h"
#include "catalog/order.h"
#include "decode/decoder.h"
#include "peers/peers.h"
#include "pipeline/batch.h"
#include "pipeline/batch_builder.h"
#include "pipeline/concurrency.h"
#include "pipeline/feeder_impl.h"
#include "pipeline/stage_times.h"
#include "source/files.h"

namespace flowos::feed {
namespace {

// How many lie behind this process, counted since the first feeder. Every batch asks whether it is
// in a forked child, and getpid() is a system call.
std::uint32_t forks() {
  static std::atomic<std::uint32_t> count = 0;
  [[maybe_unused]] static const int watched = pthread_atfork(nullptr, nullptr, [] { ++count; });
  return count;
}

std::uint32_t cores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    return static_cast<std::uint32_t>(CPU_COUNT(&set));
  }
  return std::max(std::thread::hardware_concurrency(), 1U);
}

FeederSettings checked(FeederSettings settings, const Catalog& catalog) {
  Share& share = settings.share;
  share.count = catalog.count();
  share.start = 0;
  if (share.count == 0) throw FeedError("the data set has no samples");
  if (share.batch_size == 0) throw FeedError("batch_size: 1 at least");
  if (share.world_size == 0) throw FeedError("world_size: 1 at least");
  if (share.rank >= share.world_size) {
    throw FeedError("rank " + std::to_string(share.rank) + " of a world of " +
                    std::to_string(share.world_size) + ": ranks count from 0");
  }
  settings.max_in_flight = std::max(settings.max_in_flight, 1U);
  return settings;
}

Depth::Limits source_limits(const FeederSettings& settings) {
  return {.min = 8, .start = 32, .max = settings.max_in_flight};
}

std::unique_ptr<Peers> joined(const FeederSettings& settings, const Order& order,
                              const std::shared_ptr<Cache>& cache) {
  if (!settings.peers) return nullptr;
  if (!cache) throw FeedError("peers: what is to be given to others needs a cache");
  return std::make_unique<Peers>(*settings.peers, order, settings.share, cache);
}

// Warm, reading is copying: a few threads do it. From a cold disk, or to decode, it takes more.
Depth::Limits cached_limits(bool decodes) {
  const std::uint32_t all = std::max(cores(), 2U);
  return {.min = 2, .start = decodes ? all : std::min(all, 4U), .max = std::max(32U, 2 * all)};
}

}  // namespace

Feeder::Inside::Inside(const FeederSettings& given, std::shared_ptr<const Catalog> its_catalog,
                       std::shared_ptr<const Files> its_files, std::shared_ptr<Cache> its_cache,
                       std::shared_ptr<const Decoder> its_decoder)
    : settings(checked(given, *its_catalog)),
      catalog(std::move(its_catalog)),
      files(std::move(its_files)),
      cache(std::move(its_cache)),
      decoder(std::move(its_decoder)),
      order(settings.share.count, settings.seed, settings.shuffle),
      peers(joined(settings, order, cache)),
      each(decoder ? decoder->size() : settings.record_bytes),
      window(settings.share, settings.memory_bytes, settings.epochs_ahead, each, sizes),
      source(source_limits(settings)),
      cached(cached_limits(decoder != nullptr)),
      max_threads(std::size_t{settings.max_in_flight} + cached_limits(true).max + kMaxElsewhere) {
  if (cache) source.set_max(cache->part_of(settings.max_in_flight));
  // What the catalog knows of sizes bounds the memory from the first batch on.
  constexpr std::uint64_t kLooks = 1024;
  const std::uint64_t step = std::max<std::uint64_t>(catalog->count() / kLooks, 1);
  for (std::uint64_t sample = 0; sample < catalog->count(); sample += step) {
    const std::int64_t size = catalog->extent(sample).size;
    if (size >= 0) sizes.note(static_cast<std::size_t>(size));
  }
}

void Feeder::Inside::seek(std::uint64_t epoch, std::uint64_t start) {
  if (start > settings.share.count) {
    throw FeedError("cannot go on from position " + std::to_string(start) +
                    ": the data set has only " + std::to_string(settings.share.count) +
                    " samples; was it another one?");
  }
  std::deque<Request> unwanted;  // abandoned when the lock is given back
  const std::lock_guard lock(mutex);
  started = true;
  waiting = false;
  look();
  if (window.seek(epoch, start)) {
    unwanted.swap(requests);
    room.notify_all();
  }
  ready.notify_all();
  wake(another());
}

// Whether the first batch may be handed over.
void Feeder::Inside::check_first() const {
  if (!broken.empty()) throw FeedError(broken);
  const BatchBuilder& first = *window.first();
  if (!first.error().empty()) throw SampleError(first.error());
  const BatchBuilder::Settled& settled = first.settled();
  const std::uint64_t lost = settled.skipped + settled.replaced;
  if (lost > 0 && skipped + replaced + lost > settings.max_skipped) {
    throw FeedError("more than " + std::to_string(settings.max_skipped) +
                    " samples could not be had; one of the last: " + settled.why);
  }
}

std::optional<std::shared_ptr<const Batch>> Feeder::Inside::next(
    std::chrono::milliseconds max_wait) {
  std::unique_lock lock(mutex);
  if (!std::exchange(started, true)) wake(another());
  const auto due = [&] {
    return closed || !broken.empty() || window.ended() || (window.first() && window.first()->ready);
  };
  if (!due()) {
    if (!std::exchange(waiting, true)) ++waits;
    ++consumers;
    look();
    const bool came = ready.wait_for(lock, max_wait, due);
    --consumers;
    look();
    if (!came) return std::nullopt;
  }
  if (closed || window.ended()) return nullptr;
  check_first();
  std::shared_ptr<BatchBuilder> builder = window.take();
  skipped += builder->settled().skipped;
  replaced += builder->settled().replaced;
  waiting = false;
  ++batches;
  const std::uint64_t samples = builder->batch.samples.size();
  ready_waited += (now_ns() - builder->ready_since) * static_cast<Nanoseconds>(samples);
  handed_over.samples += samples;
  handed_over.bytes += builder->batch.used_bytes;
  const bool wanted = !waking && another();  // the thread being woken asks again
  lock.unlock();
  wake(wanted);
  const Batch* batch = &builder->batch;
  return std::shared_ptr<const Batch>(std::move(builder), batch);
}

void Feeder::Inside::close() {
  if (peers) peers->close();
  std::vector<std::thread> ending;
  {
    const std::lock_guard lock(mutex);
    closed = true;
    look();
    ending.swap(threads);
    for (std::condition_variable* all : {&work, &room, &ready, &outgoing}) all->notify_all();
  }
  for (std::thread& thread : ending) thread.join();
  // What was claimed for the cache is given up, without the lock.
  std::deque<Request> unwanted;
  std::unordered_map<std::uint64_t, Request> unanswered;
  std::deque<Arrival> unfinished;
  const std::lock_guard lock(mutex);
  unwanted.swap(requests);
  unanswered.swap(pulled);
  for (const auto& [id, request] : unanswered) outside.end(request.since, now_ns());
  unfinished.swap(arrivals);
}

FeederStats Feeder::Inside::stats() const {
  FeederStats stats;
  if (cache) {
    stats.damaged = cache->damaged();
    stats.stolen = cache->stolen();
    stats.complaint = cache->complaint();
  }
  if (peers) {
    const std::string complaint = peers->complaint();
    if (!complaint.empty() && !stats.complaint.empty()) stats.complaint += "; ";
    stats.complaint += complaint;
  }
  const std::lock_guard lock(mutex);
  stats.batches = batches;
  stats.waits = waits;
  stats.skipped = skipped;
  stats.replaced = replaced;
  stats.in_flight = in_flight;
  stats.depth = source.allowed();
  stats.ready = window.ready();
  add_stages(stats, now_ns());
  return stats;
}

Feeder::Feeder(const FeederSettings& settings, std::shared_ptr<const Catalog> catalog,
               std::shared_ptr<const Files> files, std::shared_ptr<Cache> cache,
               std::shared_ptr<const Decoder> decoder)
    : forks_(forks()),
      inside_(std::make_unique<Inside>(settings, std::move(catalog), std::move(files),
                                       std::move(cache), std::move(decoder))) {}

// A forked process has none of the threads, and perhaps locks that they held: it lets all lie.
Feeder::~Feeder() {
  if (forks_ != forks()) [[maybe_unused]]
    Inside* left = inside_.release();
}

Feeder::Inside& Feeder::inside() const {
  if (forks_ != forks()) {
    throw FeedError("this feed was made before the process was forked: make it where it is used");
  }
  return *inside_;
}

void Feeder::seek(std::uint64_t epoch, std::uint64_t start) { inside().seek(epoch, start); }

std::shared_ptr<const Batch> Feeder::next() {
  for (;;) {
    if (auto batch = next_within(std::chrono::seconds(1))) return *std::move(batch);
  }
}

std::optional<std::shared_ptr<const Batch>> Feeder::next_within(
    std::chrono::milliseconds max_wait) {
  return inside().next(max_wait);
}

void Feeder::close() { inside().close(); }

bool Feeder::closed() const {
  const Inside& its = inside();
  const std::lock_guard lock(its.mutex);
  return its.closed;
}

FeederStats Feeder::stats() const { return inside().stats(); }

std::vector<Feeder::Ticket> Feeder::pull(std::size_t max_tickets) {
  return inside().pull(max_tickets);
}

void Feeder::push(std::uint64_t id, std::span<const std::byte> bytes) { inside().push(id, bytes); }

void Feeder::fail(std::uint64_t id, const std::string& why) { inside().fail(id, why); }

}  // namespace flowos::feed
