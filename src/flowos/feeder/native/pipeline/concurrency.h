#pragma once

#include <cstdint>

namespace flowos::feed {

// How many reads to have in flight, found by trying: twice as many, and accepted where that brings
// more bytes per second; else half as many. Where those bring as many, only latency fell, and a
// quarter fewer are accepted: twice what fills the link stays in flight, as a thread that is held
// up for a moment would leave the link idle. What did not help is tried again later and later. It
// neither waits nor looks at a clock.
class Depth {
 public:
  struct Limits {
    std::uint32_t min, start, max;
  };

  explicit Depth(const Limits& limits);

  std::uint32_t allowed() const { return tried_ < limits_.max ? tried_ : limits_.max; }
  // Another share of what the node may have in flight.
  void set_max(std::uint32_t max);
  // A read of so many bytes ended, at `now` seconds, when so many, it included, were in flight.
  void ended(double now, std::uint64_t bytes, std::uint32_t in_flight);

 private:
  enum class Trial { none, more, fewer };

  void begin(double now);
  void judge(double rate);
  void try_next(double rate);
  void reject();
  std::uint32_t a_quarter_fewer() const;

  Limits limits_;
  std::uint32_t held_;   // the depth that was found so far
  std::uint32_t tried_;  // the depth in use
  Trial trial_ = Trial::none;
  Trial next_ = Trial::more;
  double held_rate_ = 0.0;
  std::uint32_t pause_ = 0;     // intervals until the next trial
  std::uint32_t patience_ = 1;  // the pause after the next failure

  // The interval that is being measured.
  bool measuring_ = false;
  std::uint32_t settling_ = 0;  // reads that ended since the depth was changed
  double since_ = 0.0;
  std::uint64_t bytes_ = 0;
  std::uint32_t reads_ = 0, full_ = 0;  // of which so many with the depth in use made use of
};

}  // namespace flowos::feed
