#include "cache/cache.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/crc32c.h"
#include "base/errors.h"
#include "cache/attach.h"
#include "cache/evict.h"
#include "cache/folder.h"
#include "cache/index.h"
#include "cache/layout.h"
#include "cache/segments.h"

namespace flowos::feed {
namespace {

using cache::Entry;
using cache::Segments;
using cache::SlotRange;
using cache::State;
using cache::Word;
using Seen = Cache::Seen;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::steady_clock;

constexpr milliseconds kBetweenLooks{100};    // at whether an owner is alive
constexpr milliseconds kBetweenCounts{250};   // of the processes attached
constexpr std::chrono::seconds kFullFor{10};  // then it is tried again: others may have freed some
constexpr std::chrono::seconds kPatience{5};  // of a read for another's fetch
constexpr std::uint32_t kSmallSlots = 256;    // where so little finds no room, it is full

std::uint32_t* lower_half(std::atomic<std::uint64_t>& word) {
  return reinterpret_cast<std::uint32_t*>(&word);
}

void sleep_while(std::atomic<std::uint64_t>& word, std::uint64_t seen, nanoseconds max_wait) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(max_wait);
  const timespec limit{static_cast<std::time_t>(seconds.count()),
                       static_cast<long>((max_wait - seconds).count())};
  ::syscall(SYS_futex, lower_half(word), FUTEX_WAIT, static_cast<std::uint32_t>(seen), &limit,
            nullptr, 0);
}

void wake_all(std::atomic<std::uint64_t>& word) {
  ::syscall(SYS_futex, lower_half(word), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

std::int64_t now_ns() { return nanoseconds(steady_clock::now().time_since_epoch()).count(); }

Word word_of(const Seen& seen) { return Word::of(seen.word); }

SlotRange range_of(const Seen& seen) {
  return {seen.segment, seen.first, static_cast<std::uint32_t>(cache::slots_for(seen.length))};
}

Seen look_at(const Entry& entry) {
  for (;;) {
    Seen seen;
    seen.word = entry.word.load(std::memory_order_acquire);
    if (!word_of(seen).kept()) return seen;
    seen.length = entry.length.load(std::memory_order_acquire);
    seen.segment = entry.segment.load(std::memory_order_acquire);
    seen.first = entry.first.load(std::memory_order_acquire);
    seen.crc = entry.crc.load(std::memory_order_acquire);
    if (entry.word.load(std::memory_order_relaxed) == seen.word) return seen;
  }
}

// Whether a sample that is not here comes by another's fetch; else it is ours, or unclaimed.
bool comes(Cache& cache, std::uint64_t sample) {
  const auto until = steady_clock::now() + kPatience;
  for (;;) {
    const Cache::Claim claim = cache.claim(sample);
    if (claim == Cache::Claim::ready) return true;
    if (claim != Cache::Claim::theirs || steady_clock::now() >= until) return false;
    cache.wait(sample, kBetweenLooks);
  }
}

}  // namespace

struct Cache::Inside {
  Inside(cache::Attached hold, const Limits& limits)
      : attached(std::move(hold)),
        segments(attached.folder, *attached.index, limits, complaint, attached.slots != nullptr) {
    if (!attached.slots) {
      complaint.say("cache " + attached.folder.path +
                    " can only be read: what is not in it is read from the source");
    }
  }

  Entry& entry(std::uint64_t sample) const {
    if (sample >= attached.index->samples()) {
      throw FeedError("cache " + attached.folder.path + ": there is no sample " +
                      std::to_string(sample) + " among " +
                      std::to_string(attached.index->samples()));
    }
    cache::keep_guard();
    return attached.index->entry(sample);
  }

  // Locks are not inherited, and another thread may have held a mutex at the fork.
  void refuse_in_child() const {
    if (attached.slots && attached.slots->forked()) {
      throw FeedError("cache " + attached.folder.path +
                      " was opened before this process was forked: make the feed after the fork");
    }
  }

  bool writable() {
    if (!attached.slots) return false;
    if (!attached.index->lost()) return true;
    complaint.say("cache " + attached.folder.path +
                  ": its index was truncated, or its disk fails or is full: nothing more is kept");
    return false;
  }

  std::uint64_t mine(State state) const {
    return Word{state, attached.slot, attached.generation}.bits();
  }

  bool dead(Word owner) const {
    if (owner.slot == attached.slot && owner.generation == attached.generation) return false;
    return owner.slot >= cache::kProcesses ||
           attached.index->generation(owner.slot).load() != owner.generation ||
           !attached.slots->taken(owner.slot);
  }

  void change(Entry& entry, std::uint64_t bits) const {
    entry.word.store(bits, std::memory_order_release);
    wake_all(entry.word);
  }

  bool full() const {
    const std::int64_t since = full_since.load();
    return since != 0 && full_at_drops.load() == attached.index->header().drops.load() &&
           nanoseconds(now_ns() - since) < kFullFor;
  }

  void no_room_for(std::uint64_t bytes) {
    if (cache::slots_for(bytes) > kSmallSlots) return;
    full_at_drops = attached.index->header().drops.load();
    full_since = now_ns();
  }

  std::uint32_t processes() {
    const std::int64_t now = now_ns();
    if (attached.slots && nanoseconds(now - counted_at.load()) >= kBetweenCounts) {
      cache::keep_guard();
      counted = attached.slots->count(attached.index->header().slots_used.load());
      counted_at = now;
    }
    return counted;
  }

  Segments::Found read(const Seen& seen, std::span<std::byte> into) {
    if (seen.length != into.size()) return Segments::Found::wrong;
    return segments.read(range_of(seen), into, seen.crc);
  }

  // It was seen right since the machine was started.
  void trust(std::uint64_t sample, const Seen& seen) const {
    if (word_of(seen).state != State::unverified) return;
    std::uint64_t bits = seen.word;
    const Word word{State::ready, 0, word_of(seen).generation};
    entry(sample).word.compare_exchange_strong(bits, word.bits());
  }

  // A sample that is not what it should be becomes ours, to be fetched again. Where it was is not
  // given back before the next one that is alone: what the entry says may be what is wrong, and
  // that room another sample's.
  bool take_over(std::uint64_t sample, const Seen& seen) const {
    std::uint64_t bits = seen.word;
    return entry(sample).word.compare_exchange_strong(bits, mine(State::fetching));
  }

  cache::Attached attached;
  cache::Complaint complaint;
  Segments segments;
  std::atomic<std::uint64_t> damaged{0}, stolen{0};
  std::atomic<std::int64_t> full_since{0};  // 0: it is not
  std::atomic<std::uint32_t> full_at_drops{0};
  std::atomic<std::int64_t> counted_at{INT64_MIN / 2};
  std::atomic<std::uint32_t> counted{1};
};

Cache::Cache(const std::string& folder, std::uint64_t fingerprint, std::uint64_t samples,
             const Limits& limits)
    : inside_(std::make_unique<Inside>(
          cache::attach(folder, samples, fingerprint, limits.neighbours), limits)) {}

Cache::~Cache() = default;

Cache::Claim Cache::claim(std::uint64_t sample) {
  Seen seen;
  return claim(sample, seen);
}

Cache::Claim Cache::claim(std::uint64_t sample, Seen& seen) {
  Inside& in = *inside_;
  in.refuse_in_child();
  Entry& entry = in.entry(sample);
  for (;;) {
    seen = look_at(entry);
    if (word_of(seen).kept()) return Claim::ready;
    if (!in.writable()) return Claim::full;
    if (word_of(seen).claimed()) return Claim::theirs;
    if (in.full()) return Claim::full;
    std::uint64_t bits = seen.word;
    if (entry.word.compare_exchange_weak(bits, in.mine(State::fetching))) return Claim::ours;
  }
}

bool Cache::has(std::uint64_t sample) const {
  return Word::of(inside_->entry(sample).word.load(std::memory_order_acquire)).kept();
}

std::optional<Cache::Seen> Cache::find(std::uint64_t sample) const {
  inside_->refuse_in_child();
  const Seen seen = look_at(inside_->entry(sample));
  return word_of(seen).kept() ? std::optional(seen) : std::nullopt;
}

std::uint64_t Cache::length(std::uint64_t sample) const {
  return inside_->entry(sample).length.load(std::memory_order_acquire);
}

bool Cache::read(std::uint64_t sample, std::span<std::byte> into) {
  inside_->refuse_in_child();
  return read(sample, look_at(inside_->entry(sample)), into);
}

bool Cache::read(std::uint64_t sample, Seen seen, std::span<std::byte> into) {
  Inside& in = *inside_;
  in.refuse_in_child();
  for (;; seen = look_at(in.entry(sample))) {
    if (!word_of(seen).kept()) {
      if (!comes(*this, sample)) return false;
      continue;
    }
    switch (in.read(seen, into)) {
      case Segments::Found::right:
        in.trust(sample, seen);
        return true;
      case Segments::Found::unreadable:
        return false;
      case Segments::Found::wrong:
      case Segments::Found::gone:
        break;
    }
    const bool is_as_seen =
        in.writable() ? in.take_over(sample, seen) : in.entry(sample).word == seen.word;
    if (!is_as_seen) continue;  // it has just changed
    if (seen.length == into.size()) ++in.damaged;
    return false;
  }
}

bool Cache::publish(std::uint64_t sample, std::span<const std::byte> bytes) {
  Inside& in = *inside_;
  in.refuse_in_child();
  Entry& entry = in.entry(sample);
  std::uint64_t claim = in.mine(State::fetching);
  if (!in.attached.slots || !entry.word.compare_exchange_strong(claim, in.mine(State::writing))) {
    return false;
  }
  const std::uint32_t lane = in.attached.slot % cache::kLanes;
  const std::uint32_t sharers = std::min(in.processes(), cache::kLanes);
  const std::optional<SlotRange> range = in.segments.keep(bytes, lane, sharers);
  if (!range) {
    in.no_room_for(bytes.size());
    in.change(entry, 0);
    return false;
  }
  entry.length.store(bytes.size(), std::memory_order_relaxed);
  entry.segment.store(range->segment, std::memory_order_relaxed);
  entry.first.store(range->first, std::memory_order_relaxed);
  entry.crc.store(crc32c(bytes), std::memory_order_relaxed);
  const std::uint32_t publication = ++in.attached.index->header().publications;
  in.change(entry, Word{State::ready, 0, publication}.bits());
  return true;
}

void Cache::abandon(std::uint64_t sample) {
  Inside& in = *inside_;
  in.refuse_in_child();
  Entry& entry = in.entry(sample);
  std::uint64_t claim = in.mine(State::fetching);
  if (in.attached.slots && entry.word.compare_exchange_strong(claim, 0)) wake_all(entry.word);
}

void Cache::wait(std::uint64_t sample, milliseconds max_wait) const {
  Inside& in = *inside_;
  in.refuse_in_child();
  if (!in.attached.slots) return;
  Entry& entry = in.entry(sample);
  const auto until = steady_clock::now() + max_wait;
  for (;;) {
    std::uint64_t seen = entry.word.load(std::memory_order_acquire);
    const Word owner = Word::of(seen);
    if (!owner.claimed()) return;
    if (in.dead(owner) && entry.word.compare_exchange_strong(seen, 0)) {
      ++in.stolen;
      wake_all(entry.word);
      return;
    }
    const nanoseconds left = until - steady_clock::now();
    if (left <= nanoseconds(0)) return;
    sleep_while(entry.word, seen, std::min<nanoseconds>(left, kBetweenLooks));
  }
}

void Cache::drop(std::uint64_t sample) {
  Inside& in = *inside_;
  in.refuse_in_child();
  Entry& entry = in.entry(sample);
  const Seen seen = look_at(entry);
  std::uint64_t bits = seen.word;
  if (!word_of(seen).kept() || !in.writable() || !entry.word.compare_exchange_strong(bits, 0)) {
    return;
  }
  in.segments.release(range_of(seen));
  ++in.attached.index->header().drops;
}

std::uint32_t Cache::part_of(std::uint32_t max_reads) const {
  return std::max<std::uint32_t>(1, max_reads / inside_->processes());
}

std::uint64_t Cache::fingerprint() const { return inside_->attached.index->identity().fingerprint; }

std::string Cache::complaint() const { return inside_->complaint.text(); }

std::uint64_t Cache::damaged() const { return inside_->damaged.load(); }

std::uint64_t Cache::stolen() const { return inside_->stolen.load(); }

std::uint64_t Cache::evicted_bytes() const { return inside_->segments.evicted_bytes(); }
std::uint64_t Cache::replaced() const { return inside_->attached.replaced; }

std::uint64_t Cache::evict_oldest(const std::string& neighbours, const std::string& mine) {
  return cache::evict_oldest(neighbours, mine);
}

}  // namespace flowos::feed
