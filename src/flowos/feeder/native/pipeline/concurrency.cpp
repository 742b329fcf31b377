#include "pipeline/concurrency.h"

#include <algorithm>
#include <cstdint>

namespace flowos::feed {
namespace {

constexpr double kMinSeconds = 0.02;
constexpr std::uint32_t kMinReads = 128;
constexpr std::uint32_t kReadsPerDepth = 8;
constexpr double kMoreIsBetter = 1.03;
constexpr double kFewerIsAsGood = 0.99;
constexpr std::uint32_t kMaxPatience = 64;

}  // namespace

Depth::Depth(const Limits& limits) : limits_(limits), held_(limits.start), tried_(limits.start) {
  set_max(limits.max);
}

void Depth::set_max(std::uint32_t max) {
  limits_.max = std::max(max, 1U);
  limits_.min = std::min(limits_.min, limits_.max);
}

void Depth::begin(double now) {
  measuring_ = true;
  since_ = now;
  bytes_ = 0;
  reads_ = 0;
  full_ = 0;
}

void Depth::ended(double now, std::uint64_t bytes, std::uint32_t in_flight) {
  const std::uint32_t depth = allowed();
  if (!measuring_) {
    // What was begun at another depth is let out first.
    if (++settling_ >= depth) begin(now);
    return;
  }
  bytes_ += bytes;
  ++reads_;
  if (in_flight >= depth - depth / 4) ++full_;
  if (reads_ < std::max(kMinReads, kReadsPerDepth * depth) || now - since_ < kMinSeconds) {
    return;
  }
  // Where something else is what limits, the rate says nothing about the depth.
  if (full_ >= reads_ - reads_ / 4) judge(static_cast<double>(bytes_) / (now - since_));
  if (allowed() == depth) {
    begin(now);
  } else {
    measuring_ = false;
    settling_ = 0;
  }
}

void Depth::judge(double rate) {
  switch (trial_) {
    case Trial::none:
      if (pause_ > 0) {
        --pause_;
      } else {
        try_next(rate);
      }
      return;
    case Trial::more:
    case Trial::fewer: {
      const double wanted = trial_ == Trial::more ? kMoreIsBetter : kFewerIsAsGood;
      if (rate < wanted * held_rate_) {
        reject();
        return;
      }
      held_ = trial_ == Trial::more ? tried_ : a_quarter_fewer();
      next_ = trial_;
      patience_ = 1;
      trial_ = Trial::none;
      try_next(rate);
      return;
    }
  }
}

std::uint32_t Depth::a_quarter_fewer() const {
  return std::max(held_ - std::max(held_ / 4, 1U), limits_.min);
}

void Depth::reject() {
  next_ = trial_ == Trial::more ? Trial::fewer : Trial::more;
  tried_ = held_;
  trial_ = Trial::none;
  pause_ = patience_;
  patience_ = std::min(2 * patience_, kMaxPatience);
}

// After a success the rate is also the one of what is now held, so it need not be measured again.
void Depth::try_next(double rate) {
  held_ = std::min(held_, limits_.max);
  const std::uint32_t more = std::min(2 * held_, limits_.max);
  const std::uint32_t fewer = std::max(held_ / 2, limits_.min);
  if (next_ == Trial::more && more == held_) next_ = Trial::fewer;
  if (next_ == Trial::fewer && fewer >= held_) next_ = Trial::more;
  tried_ = next_ == Trial::more ? more : std::min(fewer, held_);
  held_rate_ = rate;
  trial_ = tried_ == held_ ? Trial::none : next_;
}

}  // namespace flowos::feed
