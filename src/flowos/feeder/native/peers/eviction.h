#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "peers/schedule.h"

namespace flowos::feed {

// Which samples a node keeps when there is not room for all.
//
// Its own (see Readers::owner) stay as long as they can: every sample is read once in an
// epoch by some node, so what all nodes hold together at the turn of an epoch is what the source is
// spared in it, and different samples are all that counts. Of what is left of the room, the copies
// of others' samples that this node reads soonest stay (Belady, A study of replacement
// algorithms for a virtual-storage computer, IBM Systems Journal 5, 1966: with the future known,
// the one needed last goes).
//
// Safe from all threads. It knows what this process cached or read; processes of one node have each
// their own.
class Eviction {
 public:
  Eviction(const Readers& readers, std::uint32_t node) : readers_(readers), node_(node) {}

  // It was read here in this epoch, and is in the cache.
  void kept(std::uint64_t sample, std::uint64_t epoch);
  // It was read here in this epoch, and there is no room: which copy is to go for it, if any.
  std::optional<std::uint64_t> gives_way(std::uint64_t sample, std::uint64_t epoch);
  // It is in the cache no more.
  void gone(std::uint64_t sample);

 private:
  using Use = std::pair<std::uint64_t, std::uint64_t>;  // when, which

  void forget(std::uint64_t sample);
  void correct(std::uint64_t now);

  const Readers& readers_;
  const std::uint32_t node_;
  std::mutex mutex_;
  std::set<Use> copies_;
  std::unordered_map<std::uint64_t, std::uint64_t> next_;  // of each copy
};

}  // namespace flowos::feed
