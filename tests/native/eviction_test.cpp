// Which node reads what, and what nodes keep, over simulated epochs of the real order.
#include "peers/eviction.h"

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "catalog/order.h"
#include "check.h"
#include "peers/schedule.h"

using flowos::feed::Eviction;
using flowos::feed::Last;
using flowos::feed::Order;
using flowos::feed::Readers;
using flowos::feed::Share;

namespace {

constexpr std::uint32_t kNodes = 4;

std::vector<std::uint32_t> one_rank_each(std::uint32_t nodes) {
  std::vector<std::uint32_t> of_rank(nodes);
  std::iota(of_rank.begin(), of_rank.end(), 0U);
  return of_rank;
}

Share shared(std::uint64_t count, std::uint32_t batch_size, std::uint32_t ranks, Last last) {
  Share share;
  share.count = count;
  share.batch_size = batch_size;
  share.world_size = ranks;
  share.last = last;
  return share;
}

// What is read in an epoch: node and sample, one batch of each rank after the other.
std::vector<std::pair<std::uint32_t, std::uint64_t>> reads_of(const Order& order, Share share,
                                                              std::uint64_t epoch) {
  std::vector<std::pair<std::uint32_t, std::uint64_t>> reads;
  for (std::uint64_t batch = 0; batch < share.batches(); ++batch) {
    for (share.rank = 0; share.rank < share.world_size; ++share.rank) {
      for (std::uint32_t slot = 0; slot < share.size_of(batch); ++slot) {
        reads.emplace_back(share.rank, order.at(epoch, share.position(batch, slot)));
      }
    }
  }
  return reads;
}

void a_sample_is_owned_by_the_node_that_reads_it_first() {
  for (const std::uint64_t count : {1U, 7U, 64U, 97U, 130U, 1000U}) {
    for (const Last last : {Last::drop, Last::keep, Last::pad}) {
      const Order order(count, 5, true);
      const Share share = shared(count, 8, kNodes, last);
      const Readers readers(order, share, one_rank_each(kNodes));
      std::set<std::uint64_t> seen;
      for (const auto& [node, sample] : reads_of(order, share, 0)) {
        if (seen.insert(sample).second) CHECK(readers.owner(sample) == node);
      }
      for (std::uint64_t sample = 0; sample < count; ++sample) {
        CHECK(readers.owner(sample) < kNodes);
      }
    }
  }
}

void the_next_read_is_the_one_that_comes() {
  const Order order(500, 9, true);
  const Share share = shared(500, 8, kNodes, Last::drop);
  const Readers readers(order, share, one_rank_each(kNodes));
  for (std::uint64_t epoch = 1; epoch < 6; ++epoch) {
    for (const auto& [node, sample] : reads_of(order, share, epoch)) {
      const std::uint64_t next = readers.next_read(node, sample, epoch - 1);
      CHECK(next == epoch * 500 + order.position_of(epoch, sample));
    }
  }
}

struct Counts {
  std::uint64_t local = 0, peers = 0, source = 0;
};

// Nodes with room for so many samples each, as the feed has them.
class Run {
 public:
  Run(const Order& order, const Share& share, std::size_t room)
      : order_(order), share_(share), readers_(order, share, one_rank_each(kNodes)), room_(room) {
    for (std::uint32_t node = 0; node < kNodes; ++node) {
      evictions_.push_back(std::make_unique<Eviction>(readers_, node));
    }
    held_.resize(kNodes);
  }

  Counts epoch(std::uint64_t number) {
    Counts counts;
    for (const auto& [node, sample] : reads_of(order_, share_, number)) {
      if (held_[node].contains(sample)) {
        ++counts.local;
        evictions_[node]->kept(sample, number);
        continue;
      }
      ++(held_[readers_.owner(sample)].contains(sample) ? counts.peers : counts.source);
      keep(node, sample, number);
    }
    return counts;
  }

  const Readers& readers() const { return readers_; }

 private:
  void keep(std::uint32_t node, std::uint64_t sample, std::uint64_t epoch) {
    if (held_[node].size() >= room_) {
      const std::optional<std::uint64_t> other = evictions_[node]->gives_way(sample, epoch);
      if (!other) return;
      CHECK(held_[node].erase(*other) == 1);
    }
    held_[node].insert(sample);
    evictions_[node]->kept(sample, epoch);
    CHECK(held_[node].size() <= room_);
  }

  const Order& order_;
  Share share_;
  Readers readers_;
  std::size_t room_;
  std::vector<std::unique_ptr<Eviction>> evictions_;
  std::vector<std::unordered_set<std::uint64_t>> held_;
};

// A data set of eight times one node's capacity, on four nodes: half of it is cached on one of
// them. No policy can do better, even with full knowledge of the future: samples that no node has
// when an epoch begins come from the source in it, as each sample is read once.
void what_the_nodes_hold_together_is_what_the_source_is_spared() {
  constexpr std::uint64_t kCount = 8192;
  constexpr std::size_t kRoom = kCount / 8;
  const Order order(kCount, 3, true);
  Run run(order, shared(kCount, 32, kNodes, Last::drop), kRoom);
  CHECK(run.epoch(0).source == kCount);
  for (std::uint64_t epoch = 1; epoch < 8; ++epoch) {
    const Counts counts = run.epoch(epoch);
    const double spared = 1.0 - static_cast<double>(counts.source) / kCount;
    const double optimum = static_cast<double>(kNodes * kRoom) / kCount;
    CHECK(spared >= 0.98 * optimum);
    CHECK(spared <= optimum);
  }
}

// How often the copy would have been here, had others' samples been kept with the whole future
// known, in so much room; a sample that is needed later than all that is held is not taken.
std::uint64_t best_hits(const std::vector<std::uint64_t>& reads, std::size_t room) {
  std::vector<std::uint64_t> next(reads.size());
  std::unordered_map<std::uint64_t, std::uint64_t> later;
  for (std::size_t i = reads.size(); i-- > 0;) {
    const auto found = later.find(reads[i]);
    next[i] = found == later.end() ? UINT64_MAX : found->second;
    later[reads[i]] = i;
  }
  std::set<std::pair<std::uint64_t, std::uint64_t>> held;
  std::uint64_t hits = 0;
  for (std::size_t i = 0; i < reads.size(); ++i) {
    hits += held.erase({i, reads[i]});
    held.emplace(next[i], reads[i]);
    if (held.size() > room) held.erase(std::prev(held.end()));
  }
  return hits;
}

// Room for half of the data set on each of four nodes: a quarter for its own, a quarter for copies.
void copies_are_kept_nearly_as_well_as_with_all_the_future_known() {
  constexpr std::uint64_t kCount = 4096;
  constexpr std::uint64_t kEpochs = 16;
  const Order order(kCount, 4, true);
  const Share share = shared(kCount, 32, kNodes, Last::drop);
  Run run(order, share, kCount / 2);
  CHECK(run.epoch(0).source == kCount);
  std::uint64_t own = 0;
  std::uint64_t local = 0;
  std::vector<std::vector<std::uint64_t>> others(kNodes);
  for (std::uint64_t epoch = 1; epoch < kEpochs; ++epoch) {
    const Counts counts = run.epoch(epoch);
    CHECK(counts.source == 0);
    local += counts.local;
    for (const auto& [node, sample] : reads_of(order, share, epoch)) {
      if (run.readers().owner(sample) == node) {
        ++own;
      } else {
        others[node].push_back(sample);
      }
    }
  }
  std::uint64_t best = 0;
  for (const auto& reads : others) best += best_hits(reads, kCount / 4);
  CHECK(static_cast<double>(local - own) >= 0.98 * static_cast<double>(best));
}

}  // namespace

int main() {
  a_sample_is_owned_by_the_node_that_reads_it_first();
  the_next_read_is_the_one_that_comes();
  what_the_nodes_hold_together_is_what_the_source_is_spared();
  copies_are_kept_nearly_as_well_as_with_all_the_future_known();
}
