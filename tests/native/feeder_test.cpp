// The feeder over real files: every sample in order, whatever is called in between.

#include "pipeline/feeder.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "catalog/order.h"
#include "check.h"
#include "feeding.h"
#include "pipeline/batch.h"

namespace {

using namespace feeding;
using feed::Feeder;
using feed::FeederSettings;
using feed::Last;

FeederSettings settings_of(std::uint32_t batch_size) {
  FeederSettings settings;
  settings.share.batch_size = batch_size;
  settings.seed = 7;
  return settings;
}

void epochs_come_whole_and_in_order(const DataSet& data) {
  for (const std::uint32_t batch_size : {1U, 7U, 32U, 500U}) {
    for (const std::uint32_t max_in_flight : {1U, 256U}) {
      FeederSettings settings = settings_of(batch_size);
      settings.max_in_flight = max_in_flight;
      Feeder feeder(settings, data.catalog, data.files, nullptr, nullptr);
      for (std::uint64_t epoch = 0; epoch < 3; ++epoch) check_epoch(feeder, data, settings, epoch);
      CHECK(feeder.next() == nullptr);  // until a seek
    }
  }
}

void ranks_take_their_parts(const DataSet& data) {
  for (const Last last : {Last::drop, Last::pad, Last::keep}) {
    std::set<std::uint64_t> batches;
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      FeederSettings settings = settings_of(16);
      settings.share.rank = rank;
      settings.share.world_size = 3;
      settings.share.last = last;
      Feeder feeder(settings, data.catalog, data.files, nullptr, nullptr);
      batches.insert(check_epoch(feeder, data, settings, 2, 5));
    }
    CHECK(batches.size() == 1);
  }
}

void seeking_elsewhere_throws_away_what_was_prepared(const DataSet& data) {
  std::mt19937 random(1);
  const FeederSettings settings = settings_of(8);
  Feeder feeder(settings, data.catalog, data.files, nullptr, nullptr);
  feed::Share share = settings.share;
  share.count = data.catalog->count();
  const feed::Order order(share.count, settings.seed, true);
  for (int i = 0; i < 60; ++i) {
    const std::uint64_t epoch = random() % 3;
    share.start = random() % (share.count + 1);
    feeder.seek(epoch, share.start);
    for (std::uint64_t number = 0; number < random() % 6; ++number) {
      const auto batch = feeder.next();
      CHECK((batch == nullptr) == (number >= share.batches()));
      if (!batch) break;
      CHECK(batch->epoch == epoch);
      CHECK(batch->number == number);
      check_batch(*batch, data, order, share);
    }
  }
}

void seeking_what_comes_next_costs_nothing(const DataSet& data) {
  const FeederSettings settings = settings_of(10);
  Feeder feeder(settings, data.catalog, data.files, nullptr, nullptr);
  feed::Share share = settings.share;
  share.count = data.catalog->count();
  for (std::uint64_t done = 0; done < share.batches(); ++done) {
    feeder.seek(0, share.start_after(done));
    const auto batch = feeder.next();
    CHECK(batch->number == 0);
  }
  CHECK(feeder.next() == nullptr);
  check_epoch(feeder, data, settings, 1);
  // Read once, and what was prepared of epoch 2: had it been thrown away, there were more.
  CHECK(feeder.stats().source_samples >= 2 * share.count);
  CHECK(feeder.stats().source_samples <= 3 * share.count);
}

void reading_ahead_ends_with_the_epochs_that_it_may_go_to(const DataSet& data) {
  for (const std::uint64_t ahead : {0U, 1U, 2U}) {
    FeederSettings settings = settings_of(50);
    settings.epochs_ahead = ahead;
    Feeder feeder(settings, data.catalog, data.files, nullptr, nullptr);
    const std::uint64_t count = data.catalog->count();
    for (std::uint64_t epoch = 0; epoch < 2; ++epoch) {
      check_epoch(feeder, data, settings, epoch);
      const std::uint64_t most = count * (epoch + 1 + ahead);
      while (feeder.stats().source_samples < most) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      CHECK(feeder.stats().source_samples == most);
    }
  }
}

void batches_that_are_held_stay_what_they_are(const DataSet& data) {
  const FeederSettings settings = settings_of(4);
  Feeder feeder(settings, data.catalog, data.files, nullptr, nullptr);
  feed::Share share = settings.share;
  share.count = data.catalog->count();
  const feed::Order order(share.count, settings.seed, true);
  std::vector<std::shared_ptr<const feed::Batch>> held;
  for (std::uint64_t epoch = 0; epoch < 2; ++epoch) {
    feeder.seek(epoch, 0);
    while (auto batch = feeder.next()) held.push_back(std::move(batch));
  }
  CHECK(held.size() == 2 * share.batches());
  std::set<const std::byte*> places;
  for (const auto& batch : held) {
    check_batch(*batch, data, order, share);
    CHECK(places.insert(batch->arena.data()).second);
  }
}

void memory_is_used_again(const DataSet& data) {
  FeederSettings settings = settings_of(4);
  settings.memory_bytes = 1;  // two batches, the least
  Feeder feeder(settings, data.catalog, data.files, nullptr, nullptr);
  std::set<const std::byte*> places;
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
    feeder.seek(epoch, 0);
    while (const auto batch = feeder.next()) {
      places.insert(batch->arena.data());
      CHECK(feeder.stats().ready <= 2);
    }
  }
  CHECK(places.size() <= 8);
}

// The first epoch's batches are small, so that the memory given to the last one is too small.
void a_batch_grows_when_its_samples_are_larger_than_those_before() {
  const Folder folder;
  const DataSet data = make_data_set(folder.at("data"), 330, [](std::uint64_t sample) {
    return sample < 300 ? std::size_t{sample % 3} : std::size_t{700000};
  });
  for (const bool with_cache : {false, true}) {
    FeederSettings settings = settings_of(30);
    settings.shuffle = false;
    const auto cache = with_cache ? make_cache(folder.at("cache"), data) : nullptr;
    Feeder feeder(settings, data.catalog, data.files, cache, nullptr);
    check_epoch(feeder, data, settings, 0);
    check_epoch(feeder, data, settings, 1);
  }
}

void records_lie_one_after_the_other() {
  const Folder folder;
  const DataSet data = make_data_set(folder.at("data"), 100, [](std::uint64_t) { return 1000; });
  FeederSettings settings = settings_of(32);
  settings.record_bytes = 1000;
  Feeder feeder(settings, data.catalog, data.files, nullptr, nullptr);
  check_epoch(feeder, data, settings, 0);
  feeder.seek(1, 0);
  const auto batch = feeder.next();
  CHECK(batch->used_bytes == 32000);
  for (std::size_t slot = 0; slot < 32; ++slot) {
    CHECK(batch->offsets[slot] == static_cast<std::int64_t>(slot * 1000));
  }
}

void what_is_cached_is_not_read_again(const DataSet& data) {
  const Folder folder;
  const FeederSettings settings = settings_of(32);
  {
    Feeder feeder(settings, data.catalog, data.files, make_cache(folder.at("cache"), data),
                  nullptr);
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch) check_epoch(feeder, data, settings, epoch);
    const feed::FeederStats stats = feeder.stats();
    CHECK(stats.source_samples == data.samples.size());
    CHECK(stats.cache_samples >= 2 * data.samples.size());
    CHECK(stats.complaint.empty());
    CHECK(stats.in_flight == 0);
  }
  Feeder feeder(settings, data.catalog, data.files, make_cache(folder.at("cache"), data), nullptr);
  check_epoch(feeder, data, settings, 0);
  CHECK(feeder.stats().source_samples == 0);
}

void feeders_with_one_cache_read_each_sample_once(const DataSet& data) {
  const Folder folder;
  const FeederSettings settings = settings_of(16);
  std::vector<std::unique_ptr<Feeder>> feeders;
  feeders.reserve(4);
  for (int i = 0; i < 4; ++i) {
    feeders.push_back(std::make_unique<Feeder>(settings, data.catalog, data.files,
                                               make_cache(folder.at("cache"), data), nullptr));
  }
  std::vector<std::thread> consumers;
  consumers.reserve(4);
  for (const auto& feeder : feeders) {
    consumers.emplace_back([&] { check_epoch(*feeder, data, settings, 0); });
  }
  for (std::thread& consumer : consumers) consumer.join();
  std::uint64_t read = 0;
  for (const auto& feeder : feeders) read += feeder->stats().source_samples;
  CHECK(read == data.samples.size());
}

void closing_ends_those_who_wait(const DataSet& data) {
  for (int i = 0; i < 20; ++i) {
    // No thread pushes, so that next() waits.
    Feeder feeder(settings_of(4), data.catalog, nullptr, nullptr, nullptr);
    std::thread consumer([&] { CHECK(feeder.next() == nullptr); });
    std::thread puller([&] {
      while (!feeder.pull(3).empty()) {
      }
    });
    if (i % 2 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(i));
    feeder.close();
    consumer.join();
    puller.join();
    CHECK(feeder.next() == nullptr);
    CHECK(feeder.pull(1).empty());
  }
}

void it_can_end_at_any_moment(const DataSet& data) {
  std::mt19937 random(2);
  const Folder folder;
  for (int i = 0; i < 40; ++i) {
    Feeder feeder(settings_of(8), data.catalog, data.files,
                  i % 2 == 0 ? make_cache(folder.at("cache"), data) : nullptr, nullptr);
    std::shared_ptr<const feed::Batch> held;
    for (std::uint64_t n = random() % 20; n > 0; --n) held = feeder.next();
    if (i % 3 == 0) feeder.close();
  }
}

void waits_are_counted(const DataSet& data) {
  const FeederSettings settings = settings_of(10);
  Feeder feeder(settings, data.catalog, nullptr, nullptr, nullptr);
  CHECK(!feeder.next_within(std::chrono::milliseconds(20)));
  CHECK(!feeder.next_within(std::chrono::milliseconds(20)));
  const feed::FeederStats stats = feeder.stats();
  CHECK(stats.waits == 1);
  CHECK(stats.waited_seconds >= 0.04);
  CHECK(stats.batches == 0);
}

}  // namespace

int main() {
  const Folder folder;
  const DataSet data = make_data_set(folder.at("data"), 330, usual_size);
  epochs_come_whole_and_in_order(data);
  ranks_take_their_parts(data);
  seeking_elsewhere_throws_away_what_was_prepared(data);
  seeking_what_comes_next_costs_nothing(data);
  reading_ahead_ends_with_the_epochs_that_it_may_go_to(data);
  batches_that_are_held_stay_what_they_are(data);
  memory_is_used_again(data);
  a_batch_grows_when_its_samples_are_larger_than_those_before();
  records_lie_one_after_the_other();
  what_is_cached_is_not_read_again(data);
  feeders_with_one_cache_read_each_sample_once(data);
  closing_ends_those_who_wait(data);
  it_can_end_at_any_moment(data);
  waits_are_counted(data);
}
