// Samples that cannot be read, that others push, and that are decoded.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/errors.h"
#include "bytes.h"
#include "catalog/order.h"
#include "check.h"
#include "decode/decoder.h"
#include "feeding.h"
#include "pipeline/batch.h"
#include "pipeline/feeder.h"

namespace {

using namespace feeding;
using feed::Feeder;
using feed::FeederSettings;
using feed::OnError;

FeederSettings settings_of(std::uint32_t batch_size, OnError on_error) {
  FeederSettings settings;
  settings.share.batch_size = batch_size;
  settings.seed = 7;
  settings.on_error = on_error;
  return settings;
}

std::string file_of(const DataSet& data, std::uint64_t sample) {
  return data.root + "/" + data.catalog->name(sample);
}

// A decoder as simple as can be: the sum of the bytes, the epoch and the sample, 24 bytes. What
// begins with 0xff cannot be decoded.
class Summing : public feed::Decoder {
 public:
  std::size_t size() const override { return 3 * sizeof(std::uint64_t); }
  void decode(std::span<const std::byte> bytes, std::uint64_t epoch, std::uint64_t sample,
              std::byte* into) const override {
    if (!bytes.empty() && bytes[0] == std::byte{0xff}) throw feed::SampleError("begins with 255");
    const std::uint64_t values[] = {sum(bytes), epoch, sample};
    std::memcpy(into, values, sizeof values);
  }
  static std::uint64_t sum(std::span<const std::byte> bytes) {
    std::uint64_t sum = 0;
    for (const std::byte byte : bytes) sum += static_cast<std::uint64_t>(byte);
    return sum;
  }
};

void check_decoded(const feed::Batch& batch, const DataSet& data) {
  CHECK(batch.used_bytes == batch.samples.size() * 24);
  for (std::size_t slot = 0; slot < batch.samples.size(); ++slot) {
    CHECK(batch.offsets[slot] == static_cast<std::int64_t>(slot * 24));
    std::uint64_t values[3];
    std::memcpy(values, bytes_in(batch, slot).data(), sizeof values);
    const auto sample = static_cast<std::uint64_t>(batch.samples[slot]);
    CHECK(values[0] == Summing::sum(data.samples[sample]));
    CHECK(values[1] == batch.epoch);
    CHECK(values[2] == sample);
  }
}

struct Seen {
  std::map<std::uint64_t, int> samples;
  std::size_t total = 0;
};

template <typename Look>
Seen seen_in_epoch(Feeder& feeder, std::uint64_t epoch, Look look) {
  Seen seen;
  feeder.seek(epoch, 0);
  while (const auto batch = feeder.next()) {
    look(*batch);
    for (const std::int64_t sample : batch->samples) {
      ++seen.samples[static_cast<std::uint64_t>(sample)];
      ++seen.total;
    }
  }
  return seen;
}

void check_bytes(const feed::Batch& batch, const DataSet& data) {
  for (std::size_t slot = 0; slot < batch.samples.size(); ++slot) {
    const auto sample = static_cast<std::uint64_t>(batch.samples[slot]);
    CHECK(same_bytes(bytes_in(batch, slot), data.samples[sample]));
  }
}

void an_error_names_the_sample_until_it_is_mended() {
  const Folder folder;
  const DataSet data = make_data_set(folder.at("data"), 100, usual_size);
  FeederSettings settings = settings_of(10, OnError::error);
  settings.shuffle = false;
  Feeder feeder(settings, data.catalog, data.files, nullptr, nullptr);
  std::filesystem::rename(file_of(data, 25), folder.at("away"));
  CHECK(feeder.next() != nullptr);
  CHECK(feeder.next() != nullptr);
  for (int i = 0; i < 2; ++i) {
    CHECK(complaint_of<feed::SampleError>(feeder).find(data.catalog->name(25)) !=
          std::string::npos);
  }
  std::filesystem::rename(folder.at("away"), file_of(data, 25));
  check_epoch(feeder, data, settings, 0, 20);
}

template <typename Look>
void lost_samples_are_left_out_or_replaced(const std::set<std::uint64_t>& lost, const DataSet& data,
                                           FeederSettings settings,
                                           const std::shared_ptr<const feed::Decoder>& decoder,
                                           Look look) {
  const std::uint64_t count = data.catalog->count();
  for (const OnError on_error : {OnError::skip, OnError::replace}) {
    settings.on_error = on_error;
    Feeder feeder(settings, data.catalog, data.files, nullptr, decoder);
    for (std::uint64_t epoch = 0; epoch < 2; ++epoch) {
      const Seen seen = seen_in_epoch(feeder, epoch, look);
      CHECK(seen.samples.size() == count - lost.size());
      for (const std::uint64_t sample : lost) CHECK(!seen.samples.contains(sample));
      CHECK(seen.total == (on_error == OnError::skip ? count - lost.size() : count));
    }
    feeder.close();
    const feed::FeederStats stats = feeder.stats();
    CHECK(stats.skipped == (on_error == OnError::skip ? 2 * lost.size() : 0));
    CHECK(stats.replaced == (on_error == OnError::replace ? 2 * lost.size() : 0));
  }
}

void lost_samples_are_left_out_or_replaced_in_every_layout() {
  const Folder folder;
  const std::set<std::uint64_t> lost = {0, 1, 2, 50, 99, 123};
  const auto remove = [&](const DataSet& data) {
    for (const std::uint64_t sample : lost) std::filesystem::remove(file_of(data, sample));
  };
  const DataSet packed = make_data_set(folder.at("packed"), 200, usual_size);
  remove(packed);
  const FeederSettings settings = settings_of(16, OnError::skip);
  const auto check_packed = [&](const feed::Batch& batch) { check_bytes(batch, packed); };
  lost_samples_are_left_out_or_replaced(lost, packed, settings, nullptr, check_packed);

  const auto check_sums = [&](const feed::Batch& batch) { check_decoded(batch, packed); };
  std::set<std::uint64_t> undecodable = lost;
  for (std::uint64_t sample = 0; sample < 200; ++sample) {
    if (packed.samples[sample][0] == std::byte{0xff}) undecodable.insert(sample);
  }
  lost_samples_are_left_out_or_replaced(undecodable, packed, settings,
                                        std::make_shared<const Summing>(), check_sums);

  const DataSet records = make_data_set(folder.at("records"), 200, [](auto) { return 777; });
  remove(records);
  FeederSettings fixed = settings;
  fixed.record_bytes = 777;
  const auto check_records = [&](const feed::Batch& batch) {
    check_bytes(batch, records);
    CHECK(batch.used_bytes == 777 * batch.samples.size());
  };
  lost_samples_are_left_out_or_replaced(lost, records, fixed, nullptr, check_records);
}

void a_batch_without_any_sample_is_an_error() {
  const Folder folder;
  const DataSet data = make_data_set(folder.at("data"), 20, usual_size);
  for (std::uint64_t i = 10; i < 15; ++i) std::filesystem::remove(file_of(data, i));
  for (const OnError on_error : {OnError::skip, OnError::replace}) {
    FeederSettings settings = settings_of(5, on_error);
    settings.shuffle = false;
    Feeder feeder(settings, data.catalog, data.files, nullptr, nullptr);
    CHECK(complaint_of<feed::SampleError>(feeder).find(data.catalog->name(10)) !=
          std::string::npos);
  }
}

void too_many_lost_samples_end_it() {
  const Folder folder;
  const DataSet data = make_data_set(folder.at("data"), 200, usual_size);
  for (std::uint64_t i = 0; i < 200; i += 2) std::filesystem::remove(file_of(data, i));
  FeederSettings settings = settings_of(8, OnError::skip);
  settings.max_skipped = 10;
  Feeder feeder(settings, data.catalog, data.files, nullptr, nullptr);
  CHECK(complaint_of<feed::FeedError>(feeder).find("more than 10 samples") != std::string::npos);
}

void a_record_of_another_size_is_an_error() {
  const Folder folder;
  const DataSet data =
      make_data_set(folder.at("data"), 20, [](std::uint64_t s) { return s == 7 ? 99 : 100; });
  FeederSettings settings = settings_of(5, OnError::error);
  settings.record_bytes = 100;
  Feeder feeder(settings, data.catalog, data.files, nullptr, nullptr);
  CHECK(complaint_of<feed::SampleError>(feeder).find("has 99 bytes, but a record has 100") !=
        std::string::npos);
}

void decoded_samples_come_from_the_cache_as_from_the_source(const DataSet& data) {
  const Folder folder;
  const auto decoder = std::make_shared<const Summing>();
  FeederSettings settings = settings_of(16, OnError::skip);
  Feeder feeder(settings, data.catalog, data.files, make_cache(folder.at("cache"), data), decoder);
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
    seen_in_epoch(feeder, epoch, [&](const feed::Batch& batch) {
      check_decoded(batch, data);
      CHECK(batch.writable);
    });
  }
  feeder.close();
  CHECK(feeder.stats().cache_samples > data.samples.size());
}

// Answers in another order than asked, some of them late, some never before the end.
void serve(Feeder& feeder, const DataSet& data, std::uint32_t seed, std::uint64_t refused) {
  std::mt19937 random(seed);
  for (;;) {
    std::vector<Feeder::Ticket> tickets = feeder.pull(1 + random() % 20);
    if (tickets.empty()) return;
    std::ranges::shuffle(tickets, random);
    for (const Feeder::Ticket& ticket : tickets) {
      if (random() % 50 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      if (ticket.sample == refused) {
        feeder.fail(ticket.id, "refused");
      } else {
        feeder.push(ticket.id, data.samples[ticket.sample]);
      }
    }
  }
}

void others_can_be_the_source(const DataSet& data, bool with_cache, bool decoded,
                              std::uint32_t max_in_flight) {
  const Folder folder;
  const std::uint64_t refused = 33;
  const auto cache = with_cache ? make_cache(folder.at("cache"), data) : nullptr;
  const auto decoder = decoded ? std::make_shared<const Summing>() : nullptr;
  FeederSettings settings = settings_of(16, OnError::skip);
  settings.max_in_flight = max_in_flight;
  Feeder feeder(settings, data.catalog, nullptr, cache, decoder);
  std::vector<std::thread> sources;
  sources.reserve(3);
  for (std::uint32_t i = 0; i < 3; ++i) {
    sources.emplace_back([&, i] { serve(feeder, data, i, refused); });
  }
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
    const Seen seen = seen_in_epoch(feeder, epoch, [&](const feed::Batch& batch) {
      decoded ? check_decoded(batch, data) : check_bytes(batch, data);
    });
    CHECK(!seen.samples.contains(refused));
    if (!decoded) CHECK(seen.samples.size() == data.samples.size() - 1);
  }
  for (std::uint64_t start = 0; start < 100; start += 10) feeder.seek(5, start);  // and away again
  CHECK(feeder.next() != nullptr);
  feeder.close();
  for (std::thread& source : sources) source.join();
  if (with_cache && !decoded) CHECK(feeder.stats().source_samples == data.samples.size() - 1);
}

// Each waits for samples requested from the other one; neither may wait for itself by that.
void two_that_share_a_cache_can_have_others_as_their_source(const DataSet& data) {
  const Folder folder;
  const auto decoder = std::make_shared<const Summing>();
  std::vector<std::unique_ptr<Feeder>> feeders;
  std::vector<std::thread> threads;
  feeders.reserve(2);
  threads.reserve(4);
  for (std::uint32_t i = 0; i < 2; ++i) {
    feeders.push_back(std::make_unique<Feeder>(settings_of(16, OnError::skip), data.catalog,
                                               nullptr, make_cache(folder.at("cache"), data),
                                               decoder));
    Feeder& feeder = *feeders.back();
    threads.emplace_back([&, i] { serve(feeder, data, i, ~std::uint64_t{0}); });
  }
  for (const auto& feeder : feeders) {
    threads.emplace_back([&] {
      for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
        seen_in_epoch(*feeder, epoch,
                      [&](const feed::Batch& batch) { check_decoded(batch, data); });
      }
      feeder->close();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

void as_many_are_pulled_as_the_depth_allows(const DataSet& data) {
  FeederSettings settings = settings_of(16, OnError::skip);
  settings.max_in_flight = 5;
  Feeder feeder(settings, data.catalog, nullptr, nullptr, nullptr);
  feeder.seek(0, 0);
  std::vector<Feeder::Ticket> tickets;
  while (tickets.size() < 5) {
    for (const Feeder::Ticket& ticket : feeder.pull(100)) tickets.push_back(ticket);
  }
  CHECK(tickets.size() == 5);
  CHECK(feeder.stats().in_flight == 5);
  std::atomic<bool> more = false;
  std::thread puller([&] {
    CHECK(feeder.pull(1).size() == 1);
    more = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK(!more);
  feeder.push(tickets[0].id, data.samples[tickets[0].sample]);
  puller.join();
  feeder.push(tickets[0].id, data.samples[tickets[0].sample]);  // twice: it is not waited for
  CHECK(feeder.stats().in_flight == 5);
}

// Tickets pulled before a seek may still be answered, which has no effect.
void late_answers_are_for_nobody(const DataSet& data) {
  Feeder feeder(settings_of(4, OnError::error), data.catalog, nullptr, nullptr, nullptr);
  feeder.seek(0, 0);
  const std::vector<Feeder::Ticket> late = feeder.pull(3);
  feeder.seek(1, 0);
  std::thread source([&] { serve(feeder, data, 1, ~std::uint64_t{0}); });
  const auto batch = feeder.next();
  CHECK(batch->epoch == 1);
  check_bytes(*batch, data);
  for (const Feeder::Ticket& ticket : late) feeder.fail(ticket.id, "too late");
  CHECK(feeder.next() != nullptr);
  feeder.close();
  source.join();
  feeder.push(late[0].id, data.samples[0]);
}

}  // namespace

int main() {
  an_error_names_the_sample_until_it_is_mended();
  lost_samples_are_left_out_or_replaced_in_every_layout();
  a_batch_without_any_sample_is_an_error();
  too_many_lost_samples_end_it();
  a_record_of_another_size_is_an_error();
  const Folder folder;
  const DataSet data = make_data_set(folder.at("data"), 300, usual_size);
  decoded_samples_come_from_the_cache_as_from_the_source(data);
  for (const bool with_cache : {false, true}) {
    for (const bool decoded : {false, true}) {
      for (const std::uint32_t max_in_flight : {1U, 4U, 256U}) {
        others_can_be_the_source(data, with_cache, decoded, max_in_flight);
      }
    }
  }
  two_that_share_a_cache_can_have_others_as_their_source(data);
  as_many_are_pulled_as_the_depth_allows(data);
  late_answers_are_for_nobody(data);
}
