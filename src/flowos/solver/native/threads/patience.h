#pragma once

#include <algorithm>
#include <chrono>

namespace flowos::solve {

// Whether the other threads are worth waiting for. Where there are more that want to run than cores
// one that holds a share may be off its core for many milliseconds, and all wait for it, again and
// again. Then nothing is given to them for a while: many times as long as was lost, longer each
// time that it is no better afterwards. A team loses little by that, and gains much where it waits
// for less than `kTolerated` of the time.
class Patience {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Span = std::chrono::duration<double>;

  // Before each turn: whether the others take part.
  bool calls_others(Time now) {
    drain(now);
    return now >= until_;
  }

  // Since then, for so long, there was nothing to do but to wait.
  void waited(Time from, Time to) {
    debt_ += to - from;
    drain(to);
    if (debt_ <= kForgiven) return;
    const bool again = from - until_ < rest_;
    factor_ = again ? std::min(2 * factor_, kMaxFactor) : kFactor;
    rest_ = debt_ * factor_;
    until_ = to + std::chrono::duration_cast<Time::duration>(rest_);
    debt_ = Span(0);
  }

 private:
  static constexpr double kTolerated = 0.4;
  static constexpr Span kForgiven{0.5e-3};
  static constexpr double kFactor = 16, kMaxFactor = 256;

  void drain(Time now) {
    debt_ = std::max(Span(0), debt_ - kTolerated * Span(now - seen_));
    seen_ = now;
  }

  Time seen_, until_;
  Span debt_{0}, rest_{0};  // time lost and not recovered; the last pause
  double factor_ = kFactor;
};

}  // namespace flowos::solve
