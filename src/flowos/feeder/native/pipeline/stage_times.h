#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace flowos::feed {

// Nanoseconds of a clock that only goes forward.
using Nanoseconds = std::int64_t;

inline Nanoseconds now_ns() {
  using std::chrono::duration_cast;
  return duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

inline double seconds_of(Nanoseconds time) { return static_cast<double>(time) * 1e-9; }

// What keeps a thread at work.
enum class Work : std::uint8_t { fetch, decode, cache_write };
// What has ended with a sample.
enum class Did : std::uint8_t { read_source, read_cache, read_peer, decode, cache_write };

inline constexpr std::size_t kWorks = 3, kDids = 5;

// Of one thread: the clock is read once where a stage ends and the next begins. That thread alone
// writes it, so that no other's cache line is waited for; every thread may read.
class alignas(64) ThreadTimes {
 public:
  struct Count {
    std::uint64_t samples = 0, bytes = 0;
  };

  // The end of the last stage.
  Nanoseconds mark() const { return mark_; }
  // What was since then is no work of its own: the thread slept, or others count it.
  void skip_to(Nanoseconds now) { mark_ = now; }
  // It was this work.
  void lap(Work work) {
    const Nanoseconds now = now_ns();
    add(worked_[at(work)], now - mark_);
    mark_ = now;
  }
  // It was waiting for a place among the reads of the source.
  void queued() {
    const Nanoseconds now = now_ns();
    add(queued_, now - mark_);
    mark_ = now;
  }
  void count(Did did, std::uint64_t bytes) {
    add(counts_[at(did)].samples, std::uint64_t{1});
    add(counts_[at(did)].bytes, bytes);
  }

  Nanoseconds worked(Work work) const { return read(worked_[at(work)]); }
  Nanoseconds queued_for() const { return read(queued_); }
  Count counted(Did did) const {
    return {.samples = read(counts_[at(did)].samples), .bytes = read(counts_[at(did)].bytes)};
  }

 private:
  struct Counter {
    std::atomic<std::uint64_t> samples = 0, bytes = 0;
  };

  template <typename Name>
  static constexpr std::size_t at(Name name) {
    return static_cast<std::size_t>(name);
  }
  template <typename T>
  static T read(const std::atomic<T>& value) {
    return value.load(std::memory_order_relaxed);
  }
  template <typename T>
  static void add(std::atomic<T>& to, T more) {
    to.store(read(to) + more, std::memory_order_relaxed);
  }

  Nanoseconds mark_ = 0;
  std::array<std::atomic<Nanoseconds>, kWorks> worked_{};
  std::atomic<Nanoseconds> queued_ = 0;
  std::array<Counter, kDids> counts_{};
};

// The time of all that are under way at once, each of them counted, those too that have not ended.
class UnderWay {
 public:
  void begin(Nanoseconds at) {
    ++count_;
    began_ += at;
  }
  void end(Nanoseconds began, Nanoseconds at) {
    --count_;
    began_ -= began;
    ended_ += at - began;
  }
  Nanoseconds until(Nanoseconds now) const { return ended_ + count_ * now - began_; }

 private:
  std::int64_t count_ = 0;
  Nanoseconds began_ = 0, ended_ = 0;  // sums
};

// What the consumer waits for, moment by moment.
class Waits {
 public:
  enum class For : std::uint8_t {
    nothing,  // it is at work: all else waits for it
    reads,    // by others: a thread that could be at work has nothing to do
    threads,  // that are all at work
    none,     // not begun, or closed
  };

  bool differs(For what) const { return what != what_; }
  void turn(For what, Nanoseconds now) {
    times_[static_cast<std::size_t>(what_)] += now - since_;
    what_ = what;
    since_ = now;
  }
  Nanoseconds until(For what, Nanoseconds now) const {
    return times_[static_cast<std::size_t>(what)] + (what == what_ ? now - since_ : 0);
  }

 private:
  For what_ = For::none;
  Nanoseconds since_ = 0;
  std::array<Nanoseconds, 4> times_{};
};

}  // namespace flowos::feed
