// What the stages of a feeder took, and what its consumer waited for.

#include "pipeline/stage_times.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "check.h"
#include "decode/decoder.h"
#include "feeding.h"
#include "pipeline/feeder.h"

namespace {

using namespace feeding;
using feed::Feeder;
using feed::FeederSettings;
using feed::FeederStats;
using feed::StageStats;
using feed::UnderWay;
using feed::Waits;
using std::chrono::milliseconds;

FeederSettings one_epoch(std::uint32_t batch_size) {
  FeederSettings settings;
  settings.share.batch_size = batch_size;
  settings.epochs_ahead = 0;
  return settings;
}

void what_is_under_way_counts_up_to_now() {
  UnderWay reads;
  CHECK(reads.until(100) == 0);
  reads.begin(10);
  reads.begin(15);
  CHECK(reads.until(20) == 10 + 5);
  reads.end(10, 30);
  CHECK(reads.until(30) == 20 + 15);
  reads.end(15, 40);
  CHECK(reads.until(1000) == 20 + 25);
}

void each_moment_belongs_to_one_thing_that_is_waited_for() {
  using For = Waits::For;
  Waits waits;
  CHECK(!waits.differs(For::none));
  waits.turn(For::nothing, 100);
  waits.turn(For::reads, 130);
  waits.turn(For::threads, 135);
  waits.turn(For::reads, 142);
  CHECK(waits.differs(For::nothing) && !waits.differs(For::reads));
  CHECK(waits.until(For::nothing, 150) == 30);
  CHECK(waits.until(For::threads, 150) == 7);
  CHECK(waits.until(For::reads, 150) == 5 + 8);
  waits.turn(For::none, 160);
  CHECK(waits.until(For::reads, 1000) == 5 + 18);
}

std::uint64_t sum_of_sizes(const DataSet& data) {
  std::uint64_t sum = 0;
  for (const auto& sample : data.samples) sum += sample.size();
  return sum;
}

void check_times(const StageStats& stage) {
  CHECK(stage.working_seconds >= 0.0 && stage.queued_seconds >= 0.0);
  CHECK(stage.seconds >= stage.working_seconds);
}

void check_stage(const StageStats& stage, std::uint64_t samples, std::uint64_t bytes) {
  CHECK(stage.samples == samples);
  CHECK(stage.bytes == bytes);
  check_times(stage);
  CHECK(samples == 0 || stage.seconds > 0.0);
}

void samples_and_bytes_are_counted_by_stage(const DataSet& data) {
  const Folder folder;
  const FeederSettings settings = one_epoch(32);
  const std::uint64_t count = data.samples.size();
  const std::uint64_t bytes = sum_of_sizes(data);
  Feeder feeder(settings, data.catalog, data.files, make_cache(folder.at("cache"), data), nullptr);
  std::uint64_t used = 0;
  for (std::uint64_t epoch = 0; epoch < 2; ++epoch) {
    feeder.seek(epoch, 0);
    while (const auto batch = feeder.next()) used += batch->used_bytes;
  }
  feeder.close();  // what is written is written
  const FeederStats stats = feeder.stats();
  check_stage(stats.fetch, 2 * count, 2 * bytes);
  check_stage(stats.decode, 0, 0);
  check_stage(stats.cache_write, count, bytes);
  check_stage(stats.hand_over, 2 * count, used);
  CHECK(stats.waited_for_reads_seconds <= stats.waited_seconds);
  CHECK(stats.consumer_seconds > 0.0);
}

// Takes its time, and keeps a thread with it.
class Slow : public feed::Decoder {
 public:
  std::size_t size() const override { return 1; }
  void decode(std::span<const std::byte> bytes, std::uint64_t /*epoch*/, std::uint64_t /*sample*/,
              std::byte* into) const override {
    std::this_thread::sleep_for(milliseconds(5));
    *into = bytes[0];
  }
};

void a_slow_decoder_keeps_all_threads_at_work(const DataSet& data) {
  Feeder feeder(one_epoch(8), data.catalog, data.files, nullptr, std::make_shared<const Slow>());
  while (feeder.next()) {
  }
  const FeederStats stats = feeder.stats();
  const std::uint64_t count = data.samples.size();
  check_stage(stats.decode, count, sum_of_sizes(data));
  check_stage(stats.hand_over, count, count);
  CHECK(stats.decode.seconds >= 0.005 * static_cast<double>(count));
  CHECK(stats.decode.working_seconds > stats.fetch.working_seconds);
  CHECK(stats.waited_for_reads_seconds < stats.waited_seconds / 2);
}

void push_all(Feeder& feeder, const DataSet& data) {
  for (auto tickets = feeder.pull(1); !tickets.empty(); tickets = feeder.pull(1)) {
    std::this_thread::sleep_for(milliseconds(2));
    feeder.push(tickets[0].id, data.samples[tickets[0].sample]);
  }
}

void a_slow_source_leaves_the_threads_without_work(const DataSet& data) {
  Feeder feeder(one_epoch(8), data.catalog, nullptr, nullptr, nullptr);
  std::thread source([&] { push_all(feeder, data); });
  while (feeder.next()) {
  }
  feeder.close();
  source.join();
  const FeederStats stats = feeder.stats();
  const std::uint64_t count = data.samples.size();
  check_stage(stats.fetch, count, sum_of_sizes(data));
  CHECK(stats.fetch.seconds >= 0.002 * static_cast<double>(count));
  CHECK(stats.fetch.queued_seconds > stats.fetch.seconds);  // there are many requests, and one read
  CHECK(stats.waited_seconds > stats.consumer_seconds);
  CHECK(stats.waited_for_reads_seconds > stats.waited_seconds / 2);
}

void a_read_that_hangs_counts_while_it_does(const DataSet& data) {
  Feeder feeder(one_epoch(8), data.catalog, nullptr, nullptr, nullptr);
  feeder.seek(0, 0);
  const auto tickets = feeder.pull(2);
  double before = 0.0;
  for (int i = 0; i < 3; ++i) {
    std::this_thread::sleep_for(milliseconds(10));
    const StageStats fetch = feeder.stats().fetch;
    CHECK(fetch.seconds >= before + 0.01);
    CHECK(fetch.samples == 0);
    before = fetch.seconds;
  }
  feeder.close();
  const double after = feeder.stats().fetch.seconds;
  CHECK(after >= before);
  std::this_thread::sleep_for(milliseconds(2));
  CHECK(feeder.stats().fetch.seconds == after);
  CHECK(!tickets.empty());
}

void what_was_pushed_and_what_is_ready_waits_its_time(const DataSet& data) {
  Feeder feeder(one_epoch(8), data.catalog, nullptr, nullptr, std::make_shared<const Slow>());
  feeder.seek(0, 0);
  std::uint64_t left = data.samples.size();
  while (left > 0) {
    for (const Feeder::Ticket& ticket : feeder.pull(8)) {
      feeder.push(ticket.id, data.samples[ticket.sample]);
      --left;
    }
  }
  while (feeder.next()) {
  }
  const FeederStats stats = feeder.stats();
  CHECK(stats.decode.queued_seconds > 0.0);
  CHECK(stats.hand_over.queued_seconds > 0.0);
}

void a_consumer_that_works_is_not_waiting(const DataSet& data) {
  Feeder feeder(one_epoch(50), data.catalog, data.files, nullptr, nullptr);
  feeder.seek(0, 0);
  double slept = 0.0;
  while (feeder.next()) {
    std::this_thread::sleep_for(milliseconds(20));
    slept += 0.02;
  }
  CHECK(slept > 0.0 && feeder.stats().consumer_seconds >= slept);
}

// For ThreadSanitizer, and no number goes back.
void all_may_be_looked_at_meanwhile(const DataSet& data) {
  const Folder folder;
  FeederSettings settings = one_epoch(16);
  settings.epochs_ahead = 1;
  Feeder feeder(settings, data.catalog, data.files, make_cache(folder.at("cache"), data), nullptr);
  std::thread consumer([&] {
    for (std::uint64_t epoch = 0; epoch < 10; ++epoch) {
      feeder.seek(epoch, 0);
      while (feeder.next()) {
      }
    }
    feeder.close();
  });
  FeederStats before;
  while (!feeder.closed()) {
    const FeederStats now = feeder.stats();
    for (const auto stage :
         {&FeederStats::fetch, &FeederStats::cache_write, &FeederStats::hand_over}) {
      const StageStats& one = now.*stage;
      const StageStats& other = before.*stage;
      CHECK(one.samples >= other.samples && one.bytes >= other.bytes);
      CHECK(one.seconds >= other.seconds && one.queued_seconds >= other.queued_seconds);
    }
    CHECK(now.consumer_seconds >= before.consumer_seconds);
    CHECK(now.waited_seconds >= before.waited_seconds);
    before = now;
  }
  consumer.join();
}

}  // namespace

int main() {
  what_is_under_way_counts_up_to_now();
  each_moment_belongs_to_one_thing_that_is_waited_for();
  const Folder folder;
  const DataSet data = make_data_set(folder.at("data"), 330, usual_size);
  samples_and_bytes_are_counted_by_stage(data);
  a_consumer_that_works_is_not_waiting(data);
  all_may_be_looked_at_meanwhile(data);
  const DataSet few = make_data_set(folder.at("few"), 80, usual_size);
  a_slow_decoder_keeps_all_threads_at_work(few);
  a_slow_source_leaves_the_threads_without_work(few);
  a_read_that_hangs_counts_while_it_does(few);
  what_was_pushed_and_what_is_ready_waits_its_time(few);
}
