// The order is a permutation of every epoch, and shares of it are complete, for any number of
// ranks, wherever an epoch is resumed.

#include "catalog/order.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <set>
#include <vector>

#include "check.h"

namespace {

using flowos::feed::Last;
using flowos::feed::Order;
using flowos::feed::Share;

std::vector<std::uint64_t> order_of(const Order& order, std::uint64_t epoch) {
  std::vector<std::uint64_t> samples(order.count());
  for (std::uint64_t position = 0; position < order.count(); ++position) {
    samples[position] = order.at(epoch, position);
  }
  return samples;
}

void is_a_permutation_with_its_inverse(std::uint64_t count) {
  const Order order(count, count * 7 + 1, true);
  for (const std::uint64_t epoch : {std::uint64_t{0}, std::uint64_t{1}, ~std::uint64_t{0}}) {
    const std::vector<std::uint64_t> samples = order_of(order, epoch);
    std::vector<bool> seen(count, false);
    for (std::uint64_t position = 0; position < count; ++position) {
      CHECK(samples[position] < count);
      CHECK(!seen[samples[position]]);
      seen[samples[position]] = true;
      CHECK(order.position_of(epoch, samples[position]) == position);
    }
  }
}

void large_sets_are_walked_too() {
  std::mt19937_64 random(1);
  for (const std::uint64_t count : {std::uint64_t{1} << 32, (std::uint64_t{1} << 40) + 1,
                                    (std::uint64_t{1} << 62) + 1, ~std::uint64_t{0}}) {
    const Order order(count, 3, true);
    for (int i = 0; i < 200; ++i) {
      const std::uint64_t position = random() % count;
      const std::uint64_t sample = order.at(5, position);
      CHECK(sample < count);
      CHECK(order.position_of(5, sample) == position);
    }
  }
}

void epochs_and_seeds_differ_and_repeat() {
  const Order order(1000, 1, true);
  CHECK(order_of(order, 0) == order_of(Order(1000, 1, true), 0));
  CHECK(order_of(order, 0) != order_of(order, 1));
  CHECK(order_of(order, 0) != order_of(Order(1000, 2, true), 0));
  const Order plain(1000, 1, false);
  CHECK(order_of(plain, 3)[17] == 17);
  CHECK(plain.position_of(3, 17) == 17);
}

// Each sample comes at each position equally often, and so does each pair of neighbours: within 5.5
// standard deviations in 40,000 epochs (a chance of 1 in 26 million for each of the figures).
void no_position_is_preferred(std::uint64_t count) {
  constexpr int kEpochs = 40000;
  const Order order(count, 11, true);
  std::vector<int> at(count * count, 0);
  std::vector<int> pairs(count * count, 0);
  for (std::uint64_t epoch = 0; epoch < kEpochs; ++epoch) {
    const std::vector<std::uint64_t> samples = order_of(order, epoch);
    for (std::uint64_t i = 0; i < count; ++i) ++at[i * count + samples[i]];
    ++pairs[samples[0] * count + samples[1]];
  }
  const auto near = [](int seen, double share) {
    const double expected = kEpochs * share;
    return std::abs(seen - expected) < 5.5 * std::sqrt(expected * (1 - share));
  };
  const auto n = static_cast<double>(count);
  for (const int seen : at) CHECK(near(seen, 1 / n));
  for (std::uint64_t i = 0; i < count * count; ++i) {
    if (i / count != i % count) CHECK(near(pairs[i], 1 / (n * (n - 1))));
  }
}

// Positions that all ranks take in these turns of an epoch, in the order of turns and ranks.
void take(Share share, std::uint64_t turns, std::vector<std::uint64_t>& positions) {
  for (std::uint64_t batch = 0; batch < turns; ++batch) {
    for (share.rank = 0; share.rank < share.world_size; ++share.rank) {
      const std::uint32_t size = share.size_of(batch);
      CHECK(size >= 1);
      CHECK(size <= share.batch_size);
      for (std::uint32_t slot = 0; slot < size; ++slot) {
        positions.push_back(share.position(batch, slot));
      }
    }
  }
}

// What an epoch consists of by its definition: no formula of the code under test.
std::uint64_t repeats_of_keep(const Share& share) {
  const std::uint64_t whole = std::uint64_t{share.batch_size} * share.world_size;
  const std::uint64_t left = share.count - share.start;
  const std::uint64_t rest = left % whole;
  if (rest == 0 || rest >= share.world_size) return 0;
  const bool divides = share.batch_size > 1 && left > whole;
  return divides ? 0 : share.world_size - rest;
}

void check_epoch(const Share& share) {
  std::vector<std::uint64_t> positions;
  take(share, share.batches(), positions);
  const std::uint64_t whole = std::uint64_t{share.batch_size} * share.world_size;
  const std::uint64_t left = share.count - share.start;
  std::uint64_t wanted = left;
  if (share.last == Last::drop) wanted = left / whole * whole;
  if (share.last == Last::pad) wanted = (left + whole - 1) / whole * whole;
  if (share.last == Last::keep) wanted += repeats_of_keep(share);
  CHECK(positions.size() == wanted);
  // First all that is left, each once and in order; then, from the beginning, what is repeated.
  for (std::uint64_t i = 0; i < wanted; ++i) {
    CHECK(positions[i] == (share.start + i) % share.count);
  }
  CHECK(share.start_after(share.batches()) == std::min(share.count, share.start + wanted));
}

void check_resume(const Share& share, std::mt19937& random) {
  const std::uint64_t turns = share.batches();
  const std::uint64_t done = turns == 0 ? 0 : random() % (turns + 1);
  std::vector<std::uint64_t> whole_epoch;
  take(share, turns, whole_epoch);
  // The same ranks go on exactly as they would have.
  std::vector<std::uint64_t> same;
  take(share, done, same);
  Share after = share;
  after.start = share.start_after(done);
  CHECK(after.batches() == turns - done);
  take(after, after.batches(), same);
  CHECK(same == whole_epoch);
  // Other ranks take what is left, all of it, and nothing that was taken.
  after.world_size = 1 + static_cast<std::uint32_t>(random() % 7);
  after.batch_size = 1 + static_cast<std::uint32_t>(random() % 6);
  check_epoch(after);
}

void shares_are_complete() {
  std::mt19937 random(2);
  for (const Last last : {Last::drop, Last::pad, Last::keep}) {
    for (std::uint64_t count = 1; count <= 60; ++count) {
      for (std::uint32_t batch_size = 1; batch_size <= 5; ++batch_size) {
        for (std::uint32_t world_size = 1; world_size <= 6; ++world_size) {
          const Share share{.count = count,
                            .start = random() % (count + 1),
                            .batch_size = batch_size,
                            .world_size = world_size,
                            .last = last};
          check_epoch(share);
          check_resume(share, random);
        }
      }
    }
  }
}

void ranks_differ_by_one_sample_at_most() {
  std::mt19937 random(3);
  for (int i = 0; i < 2000; ++i) {
    Share share{.count = 1 + random() % 5000,
                .start = 0,
                .batch_size = 1 + static_cast<std::uint32_t>(random() % 64),
                .world_size = 1 + static_cast<std::uint32_t>(random() % 32),
                .last = Last::keep};
    for (std::uint64_t batch = 0; batch < share.batches(); ++batch) {
      std::set<std::uint32_t> sizes;
      for (share.rank = 0; share.rank < share.world_size; ++share.rank) {
        sizes.insert(share.size_of(batch));
      }
      CHECK(*sizes.rbegin() - *sizes.begin() <= 1);
      CHECK(batch + 2 >= share.batches() || *sizes.begin() == share.batch_size);
    }
  }
}

}  // namespace

int main() {
  for (std::uint64_t count = 1; count <= 300; ++count) is_a_permutation_with_its_inverse(count);
  for (const std::uint64_t count : {1000U, 1023U, 1024U, 1025U, 4096U, 4097U, 65536U, 65537U}) {
    is_a_permutation_with_its_inverse(count);
  }
  large_sets_are_walked_too();
  epochs_and_seeds_differ_and_repeat();
  for (const std::uint64_t count : {3U, 10U, 17U}) no_position_is_preferred(count);
  shares_are_complete();
  ranks_differ_by_one_sample_at_most();
}
