// The control loop with a modelled store: every read takes a round trip, then queues on one link.

#include "pipeline/concurrency.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iostream>
#include <queue>
#include <random>
#include <vector>

#include "check.h"

namespace {

using flowos::feed::Depth;

struct Store {
  double round_trip_seconds;
  double bytes_per_second;
  double mean_bytes = 41 << 10;
};

struct Outcome {
  double bytes_per_second;  // from the beginning to the end
  double share;             // of what the link can
  std::uint32_t depth;
  std::uint32_t deepest;
};

// As many reads as the depth allows are in flight, but a new one at most every `think_seconds`.
Outcome simulate(Depth& depth, const Store& store, int reads, double think_seconds = 0.0) {
  std::mt19937 random(4);
  std::lognormal_distribution<double> sizes(0.0, 0.4);
  struct Read {
    double ends;
    std::uint64_t bytes;
    bool operator>(const Read& other) const { return ends > other.ends; }
  };
  std::priority_queue<Read, std::vector<Read>, std::greater<>> in_flight;
  double now = 0.0;
  double link_free = 0.0;
  double may_start = 0.0;
  double total = 0.0;
  std::uint32_t deepest = 0;
  int begun = 0;
  for (int ended = 0; ended < reads;) {
    if (begun < reads && in_flight.size() < depth.allowed() &&
        (in_flight.empty() || may_start <= in_flight.top().ends)) {
      const double from = std::max(now, may_start);
      may_start = from + think_seconds;
      const double bytes = store.mean_bytes * sizes(random);
      link_free = std::max(link_free, from) + bytes / store.bytes_per_second;
      in_flight.push({link_free + store.round_trip_seconds, static_cast<std::uint64_t>(bytes)});
      ++begun;
      continue;
    }
    const Read read = in_flight.top();
    now = std::max(now, read.ends);
    depth.ended(now, read.bytes, static_cast<std::uint32_t>(in_flight.size()));
    in_flight.pop();
    total += static_cast<double>(read.bytes);
    deepest = std::max(deepest, depth.allowed());
    ++ended;
  }
  const double rate = total / now;
  return {rate, rate / store.bytes_per_second, depth.allowed(), deepest};
}

Outcome run(const Store& store, int reads, std::uint32_t most = 256) {
  Depth depth({.min = 8, .start = 32, .max = most});
  const Outcome outcome = simulate(depth, store, reads);
  std::cout << store.round_trip_seconds * 1e3 << " ms " << store.bytes_per_second * 8e-9
            << " Gbit/s: " << outcome.share << " of the link, depth " << outcome.depth
            << ", at most " << outcome.deepest << '\n';
  return outcome;
}

// Reads of a millisecond each, as many in flight as may be, at this many bytes in each.
struct Reader {
  Depth depth;
  double now = 0.0;

  explicit Reader(std::uint32_t start = 32) : depth({.min = 2, .start = start, .max = 256}) {}

  void end(std::uint32_t reads, std::uint64_t bytes, double seconds = 1e-3) {
    for (std::uint32_t read = 0; read < reads; ++read) {
      now += seconds;
      depth.ended(now, bytes, depth.allowed());
    }
  }
  // The depth after those before were let out and an interval was measured.
  std::uint32_t after_an_interval(std::uint64_t bytes) {
    end(depth.allowed(), bytes);
    end(std::max(128U, 8 * depth.allowed()), bytes);
    return depth.allowed();
  }
};

void more_are_kept_for_three_hundredths_and_fewer_for_the_loss_of_one() {
  for (const bool better : {false, true}) {
    Reader reader;
    CHECK(reader.after_an_interval(100'000) == 64);
    CHECK(reader.after_an_interval(better ? 103'100 : 102'900) == (better ? 128 : 32));
  }
  for (const bool as_good : {false, true}) {
    Reader reader;
    CHECK(reader.after_an_interval(100'000) == 64);
    CHECK(reader.after_an_interval(100'000) == 32);
    CHECK(reader.after_an_interval(100'000) == 32);  // what did not help is not tried at once
    reader.end(256, 100'000);
    CHECK(reader.depth.allowed() == 16);
    CHECK(reader.after_an_interval(as_good ? 99'100 : 98'900) == (as_good ? 12 : 32));
  }
}

void an_interval_has_reads_and_time_enough() {
  Reader reads;
  reads.end(32 + 255, 100'000);
  CHECK(reads.depth.allowed() == 32);
  reads.end(1, 100'000);
  CHECK(reads.depth.allowed() == 64);
  Reader few(2);
  few.end(2 + 127, 100'000);
  CHECK(few.depth.allowed() == 2);
  few.end(1, 100'000);
  CHECK(few.depth.allowed() == 4);
  Reader quick;
  quick.end(32, 100'000);
  quick.end(399, 100'000, 5e-5);
  CHECK(quick.depth.allowed() == 32);
  quick.end(2, 100'000, 5e-5);
  CHECK(quick.depth.allowed() == 64);
}

// 32 reads fill the link: fewer bring less, and more bring no more.
void what_did_not_help_is_tried_again_after_64_intervals_at_most() {
  Reader reader;
  CHECK(reader.after_an_interval(100'000) == 64);
  for (const std::uint32_t pause : {1, 2, 4, 8, 16, 32, 64, 64}) {
    CHECK(reader.after_an_interval(reader.depth.allowed() < 32 ? 50'000 : 100'000) == 32);
    reader.end(32 + 256 * (pause + 1) - 1, 100'000);
    CHECK(reader.depth.allowed() == 32);
    reader.end(1, 100'000);
    CHECK(reader.depth.allowed() != 32);
  }
}

void a_link_is_filled() {
  CHECK(run({.001, 125e6}, 20000).share > 0.97);
  CHECK(run({.005, 125e6}, 20000).share > 0.97);
  CHECK(run({.010, 125e6}, 20000).share > 0.95);
  CHECK(run({.001, 25e6}, 20000).share > 0.97);
  CHECK(run({.0001, 1e9}, 20000).share > 0.97);
}

void a_long_fat_link_gets_a_greater_depth() {
  const Outcome outcome = run({.010, 800e6}, 200000);
  CHECK(outcome.share > 0.9);
  CHECK(outcome.depth > 150);
}

void depth_falls_where_only_latency_grows() {
  const Outcome outcome = run({.0005, 125e6}, 40000);
  CHECK(outcome.share > 0.97);
  CHECK(outcome.depth <= 18);
}

void twice_what_fills_the_link_stays_in_flight() {
  const Outcome outcome = run({.003, 125e6}, 40000);  // 10 fill it
  CHECK(outcome.depth >= 16 && outcome.depth <= 28);
}

void the_most_is_never_passed() {
  CHECK(run({.050, 10e9}, 20000, 48).deepest <= 48);
  Depth depth({.min = 8, .start = 32, .max = 256});
  depth.set_max(5);
  CHECK(depth.allowed() == 5);
  simulate(depth, {.050, 10e9}, 5000);
  CHECK(depth.allowed() == 5);
  depth.set_max(64);
  CHECK(simulate(depth, {.050, 10e9}, 20000).depth > 30);
  depth.set_max(0);
  CHECK(depth.allowed() == 1);
}

void a_reader_that_is_held_up_elsewhere_tells_nothing() {
  Depth depth({.min = 8, .start = 32, .max = 256});
  const Outcome outcome = simulate(depth, {.001, 10e9}, 20000, .001);
  CHECK(outcome.deepest == 32);
  CHECK(outcome.depth == 32);
}

void few_threads_stay_few_where_more_do_not_help() {
  Depth depth({.min = 2, .start = 2, .max = 32});
  const Outcome outcome = simulate(depth, {.000002, 10e9}, 200000);
  CHECK(outcome.depth <= 4);
}

void a_link_that_becomes_longer_is_followed() {
  Depth depth({.min = 8, .start = 32, .max = 256});
  simulate(depth, {.0005, 125e6}, 20000);
  const std::uint32_t before = depth.allowed();
  CHECK(before < 32);
  // The model's clock begins anew: the feedback must live with a clock that it did not expect.
  const Outcome outcome = simulate(depth, {.020, 125e6}, 40000);
  std::cout << "then 20 ms: " << outcome.share << ", depth " << outcome.depth << '\n';
  CHECK(outcome.depth > 48);
}

}  // namespace

int main() {
  more_are_kept_for_three_hundredths_and_fewer_for_the_loss_of_one();
  an_interval_has_reads_and_time_enough();
  what_did_not_help_is_tried_again_after_64_intervals_at_most();
  a_link_is_filled();
  a_long_fat_link_gets_a_greater_depth();
  depth_falls_where_only_latency_grows();
  twice_what_fills_the_link_stays_in_flight();
  the_most_is_never_passed();
  a_reader_that_is_held_up_elsewhere_tells_nothing();
  few_threads_stay_few_where_more_do_not_help();
  a_link_that_becomes_longer_is_followed();
}
