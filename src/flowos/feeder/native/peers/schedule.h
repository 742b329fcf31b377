#pragma once

#include <cstdint>
#include <vector>

#include "catalog/order.h"

namespace flowos::feed {

// Which node of a run reads which sample when. It follows from the order, so that no
// directory is needed.
class Readers {
 public:
  static constexpr std::uint64_t kNever = UINT64_MAX;

  // share: of any rank; node_of_rank: one for each.
  Readers(const Order& order, const Share& share, std::vector<std::uint32_t> node_of_rank);

  std::uint64_t count() const { return order_.count(); }
  std::uint32_t nodes() const { return nodes_; }
  // Where a sample is looked for when it is not here: the node that reads it first, in epoch 0.
  // (A sample that no node reads then has an owner all the same.)
  std::uint32_t owner(std::uint64_t sample) const;
  // When this node reads the sample next after this epoch, as epoch * count() + position; kNever:
  // not within the next epochs, of which it looks at four per node.
  std::uint64_t next_read(std::uint32_t node, std::uint64_t sample, std::uint64_t epoch) const;

 private:
  std::uint32_t rank_at(std::uint64_t position) const;
  bool reads(std::uint32_t rank, std::uint64_t batch, std::uint64_t position) const;

  Order order_;
  Share share_;
  std::vector<std::uint32_t> node_of_rank_;
  std::uint32_t nodes_;
};

}  // namespace flowos::feed
