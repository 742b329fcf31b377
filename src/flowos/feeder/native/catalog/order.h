#pragma once

#include <cstdint>

namespace flowos::feed {

// Which sample comes at which position of which epoch: a seeded permutation, computed in O(1) and
// without a list, the same whatever the number of threads, processes and nodes.
//
// A Feistel network over the least power of four that holds all samples (64 at least), walked until
// it lands on one (Black and Rogaway, Ciphers with arbitrary finite domains, CT-RSA 2002).
class Order {
 public:
  Order(std::uint64_t count, std::uint64_t seed, bool shuffle);

  std::uint64_t count() const { return count_; }
  // position < count().
  std::uint64_t at(std::uint64_t epoch, std::uint64_t position) const;
  // The inverse: where the sample comes in this epoch.
  std::uint64_t position_of(std::uint64_t epoch, std::uint64_t sample) const;

 private:
  std::uint64_t count_;
  std::uint64_t seed_;
  bool shuffle_;
  unsigned half_bits_;
};

// What becomes of samples that do not fill a batch of every rank.
enum class Last {
  drop,  // they are left out
  pad,   // the batch is filled up with samples from the beginning of the epoch's order
  keep,  // the last batches are smaller: what is left is divided, each rank gets at least one
};

// The part of an epoch that one rank takes: in turns of one batch per rank, from position `start`
// on (0, or where a stopped epoch is resumed, also with another number of ranks). All ranks have
// equally many batches.
struct Share {
  std::uint64_t count = 0;  // samples of an epoch
  std::uint64_t start = 0;
  std::uint32_t batch_size = 1;
  std::uint32_t rank = 0;
  std::uint32_t world_size = 1;
  Last last = Last::keep;

  std::uint64_t batches() const;
  // How many samples this rank's batch number `batch` has.
  std::uint32_t size_of(std::uint64_t batch) const;
  // The position in the epoch's order of its sample number `slot`; slot < size_of(batch).
  std::uint64_t position(std::uint64_t batch, std::uint32_t slot) const;
  // The start with which what comes after `batch` batches of all ranks goes on.
  std::uint64_t start_after(std::uint64_t batches) const;
};

}  // namespace flowos::feed
