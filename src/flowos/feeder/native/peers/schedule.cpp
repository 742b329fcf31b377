#include "peers/schedule.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/errors.h"
#include "catalog/order.h"

namespace flowos::feed {

Readers::Readers(const Order& order, const Share& share, std::vector<std::uint32_t> node_of_rank)
    : order_(order), share_(share), node_of_rank_(std::move(node_of_rank)), nodes_(0) {
  if (node_of_rank_.size() != share_.world_size) {
    throw FeedError("peers: the node of each rank is to be given");
  }
  share_.start = 0;
  nodes_ = *std::ranges::max_element(node_of_rank_) + 1;
}

bool Readers::reads(std::uint32_t rank, std::uint64_t batch, std::uint64_t position) const {
  Share share = share_;
  share.rank = rank;
  const std::uint64_t first = share.position(batch, 0);
  return position >= first && position - first < share.size_of(batch);
}

// Whole turns are cut alike; how the last two are is the share's business.
std::uint32_t Readers::rank_at(std::uint64_t position) const {
  const std::uint64_t whole = std::uint64_t{share_.batch_size} * share_.world_size;
  const std::uint64_t turn = position / whole;
  const std::uint64_t turns = share_.batches();
  for (std::uint64_t batch = turn; batch < std::min(turn + 2, turns) && turn + 2 >= turns;
       ++batch) {
    for (std::uint32_t rank = 0; rank < share_.world_size; ++rank) {
      if (reads(rank, batch, position)) return rank;
    }
  }
  return static_cast<std::uint32_t>(position % whole / share_.batch_size);
}

std::uint32_t Readers::owner(std::uint64_t sample) const {
  return node_of_rank_[rank_at(order_.position_of(0, sample))];
}

std::uint64_t Readers::next_read(std::uint32_t node, std::uint64_t sample,
                                 std::uint64_t epoch) const {
  const std::uint64_t last = epoch + 4 * std::uint64_t{nodes_};
  for (std::uint64_t later = epoch + 1; later <= last; ++later) {
    const std::uint64_t position = order_.position_of(later, sample);
    if (node_of_rank_[rank_at(position)] == node) return later * count() + position;
  }
  return kNever;
}

}  // namespace flowos::feed
