// Samples that another node has, and which of them stay here.

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <optional>
#include <span>

#include "peers/peers.h"
#include "pipeline/feeder.h"
#include "pipeline/feeder_impl.h"
#include "pipeline/stage_times.h"

namespace flowos::feed {

// False: the source is to be asked. It is first received apart: a place in the batch is taken only
// when all of it is there.
bool Feeder::Inside::from_peer(Worker& self, const Slot& slot, Owned& owned) {
  std::span<const std::byte> bytes;
  {
    std::unique_lock lock(mutex);
    if (closed || slot.builder->discarded()) return true;
    const Away away(*this, self, elsewhere, true, lock);
    std::optional<Peers::Sample> sample = peers->ask(slot.sample);
    if (!sample || (!decoder && each != 0 && sample->size() != each)) return false;
    std::byte* into = self.buffer(sample->size());
    if (!sample->read(into)) return false;
    bytes = {into, sample->size()};
  }
  if (!decoder) std::ranges::copy(bytes, place(slot, bytes.size()));
  self.times.lap(Work::fetch);
  self.times.count(Did::read_peer, bytes.size());
  deliver(self, slot, bytes);
  keep(self, slot, owned, bytes);
  return true;
}

// There is no room for it: whether something that is needed later went.
bool Feeder::Inside::make_room(const Slot& slot) {
  if (!peers) return false;
  const auto other = peers->eviction().gives_way(slot.sample, slot.builder->plan().epoch);
  if (other) cache->drop(*other);
  return other.has_value();
}

void Feeder::Inside::keep(Worker& self, const Slot& slot, Owned& owned,
                          std::span<const std::byte> bytes) {
  if (owned) {
    if (owned.publish(bytes)) self.times.count(Did::cache_write, bytes.size());
    self.times.lap(Work::cache_write);
  }
  note_kept(slot);
}

void Feeder::Inside::note_kept(const Slot& slot) {
  if (!peers || !cache->has(slot.sample)) return;
  peers->eviction().kept(slot.sample, slot.builder->plan().epoch);
}

}  // namespace flowos::feed
