#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace flowos::bench {

using Clock = std::chrono::steady_clock;

// A link to remote storage, shared by all, first in first out, with a round trip for each request.
// It only computes when an answer would arrive; the caller waits.
class Link {
 public:
  // bytes_per_second 0: no limit.
  Link(double bytes_per_second, std::chrono::nanoseconds round_trip)
      : bytes_per_second_(bytes_per_second), round_trip_(round_trip) {}

  // An answer without data, after so many sequential round trips.
  Clock::time_point answered(std::uint64_t round_trips = 1) {
    requests_ += round_trips;
    return Clock::now() + static_cast<std::int64_t>(round_trips) * round_trip_;
  }

  // An answer of so many bytes, requested at that time: it is queued on the link.
  Clock::time_point carried(std::size_t bytes, Clock::time_point asked = Clock::now()) {
    reads_ += 1;
    bytes_ += bytes;
    if (bytes_per_second_ <= 0) return asked + round_trip_;
    const std::chrono::duration<double> takes(static_cast<double>(bytes) / bytes_per_second_);
    const std::lock_guard<std::mutex> guard(lock_);
    free_at_ = std::max(free_at_, asked) + std::chrono::duration_cast<Clock::duration>(takes);
    return free_at_ + round_trip_;
  }

  std::uint64_t requests() const { return requests_; }  // without data
  std::uint64_t reads() const { return reads_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  const double bytes_per_second_;
  const std::chrono::nanoseconds round_trip_;
  std::mutex lock_;
  Clock::time_point free_at_{};
  std::atomic<std::uint64_t> requests_{0}, reads_{0}, bytes_{0};
};

}  // namespace flowos::bench
