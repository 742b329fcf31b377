#include <sys/resource.h>

#include <chrono>
#include <cstddef>
#include <mutex>
#include <new>
#include <span>
#include <string>
#include <utility>

#include "base/errors.h"
#include "base/source_file.h"
#include "cache/cache.h"
#include "pipeline/feeder.h"
#include "pipeline/feeder_impl.h"
#include "pipeline/stage_times.h"
#include "source/files.h"

namespace flowos::feed {
namespace {

// How often this thread has gone to sleep of its own accord.
long times_slept() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

}  // namespace

SampleError Feeder::Inside::about(const Slot& slot, const std::string& what) const {
  const std::string name = catalog->name(slot.sample);
  return SampleError((files ? shown_below(files->root(), name) : name) + ": " + what);
}

// From the cache, else from another node, else from the source.
void Feeder::Inside::fetch(Worker& self, const Slot& slot) {
  if (slot.builder->discarded()) return;
  try {
    Owned owned;
    if (from_cache(self, slot, owned) != Found::missing) return;
    if (peers && from_peer(self, slot, owned)) return;
    if (files) {
      from_source(self, slot, std::move(owned));
    } else {
      hand_out(self, slot, std::move(owned));
    }
  } catch (const SampleError& error) {
    failed(slot, error.what(), &self.times);
  }
}

// Missing and owned: it is ours to bring it into the cache.
Feeder::Inside::Found Feeder::Inside::from_cache(Worker& self, const Slot& slot, Owned& owned) {
  if (!cache) return Found::missing;
  unsigned tries = 0;  // what goes for a larger one may not make room enough
  Cache::Seen seen;
  for (;;) {
    switch (cache->claim(slot.sample, seen)) {
      case Cache::Claim::ready:
        if (read_cached(self, slot, seen)) {
          note_kept(slot);
          return Found::delivered;
        }
        [[fallthrough]];
      case Cache::Claim::ours:
        owned = Owned(cache.get(), slot.sample);
        return Found::missing;
      case Cache::Claim::full:
        if (tries++ == 4 || !make_room(slot)) return Found::missing;
        break;
      case Cache::Claim::theirs:
        if (!wait_for_others(self, slot)) return Found::unwanted;
    }
  }
}

bool Feeder::Inside::read_cached(Worker& self, const Slot& slot, const Cache::Seen& seen) {
  const std::size_t bytes = seen.length;
  std::byte* into = buffer_for(self, slot, bytes);
  if (!cache->read(slot.sample, seen, {into, bytes})) return false;
  self.bytes_while_busy = bytes;
  self.times.lap(Work::fetch);
  self.times.count(Did::read_cache, bytes);
  deliver(self, slot, {into, bytes});
  return true;
}

// False: the slot was cancelled.
bool Feeder::Inside::wait_for_others(Worker& self, const Slot& slot) {
  constexpr std::chrono::milliseconds kLookAgain{100};
  std::unique_lock lock(mutex);
  {
    const Away away(*this, self, elsewhere, true, lock);
    cache->wait(slot.sample, kLookAgain);
  }
  lock.lock();
  return !closed && !slot.builder->discarded();
}

// False: the slot was cancelled. The lock is held.
bool Feeder::Inside::wait_for_room(Worker& self, const Slot& slot,
                                   std::unique_lock<std::mutex>& lock) {
  const auto unwanted = [&] { return closed || slot.builder->discarded(); };
  const auto come = [&] { return unwanted() || in_flight < source.allowed(); };
  if (!come()) {
    ++in_room;
    look();
    room.wait(lock, come);
    --in_room;
    look();
    self.times.queued();
  }
  return !unwanted();
}

void Feeder::Inside::from_source(Worker& self, const Slot& slot, Owned owned) {
  std::span<const std::byte> bytes;
  {
    std::unique_lock lock(mutex);
    if (!wait_for_room(self, slot, lock)) return;
    Away away(*this, self, in_flight, source_sleeps, lock);
    const bool watched = self.source_reads++ % 4 == 0;
    const long before = watched ? times_slept() : 0;
    const Opened opened = files->open(slot.sample);
    std::byte* into = buffer_for(self, slot, opened.size());
    files->read(slot.sample, opened, into);
    bytes = {into, opened.size()};
    away.brought(bytes.size());
    if (watched) away.slept(times_slept() > before);
    if (!away.waits()) self.bytes_while_busy = bytes.size();
  }
  self.times.count(Did::read_source, bytes.size());
  deliver(self, slot, bytes);
  keep(self, slot, owned, bytes);
}

// The sample's place in its batch; SampleError where it does not fit there.
std::byte* Feeder::Inside::place(const Slot& slot, std::size_t bytes) {
  if (each != 0 && bytes != each) {
    throw about(
        slot, "has " + std::to_string(bytes) + " bytes, but a record has " + std::to_string(each));
  }
  std::byte* const into = slot.builder->place(slot.number, slot.sample, bytes);
  if (each == 0) sizes.note(bytes);  // not of what there was no memory for
  return into;
}

// Where the bytes are read to as they are: into the batch, or to where the decoder takes them from.
std::byte* Feeder::Inside::buffer_for(Worker& self, const Slot& slot, std::size_t bytes) {
  try {
    return decoder ? self.buffer(bytes) : place(slot, bytes);
  } catch (const std::bad_alloc&) {
    throw about(slot, "has " + std::to_string(bytes) + " bytes, for which there is no memory");
  }
}

void Feeder::Inside::deliver(Worker& self, const Slot& slot, std::span<const std::byte> bytes) {
  if (decoder) {
    std::byte* into = place(slot, each);
    try {
      decoder->decode(bytes, slot.builder->plan().epoch, slot.sample, into);
    } catch (const SampleError& error) {
      self.times.lap(Work::decode);
      throw about(slot, error.what());
    }
    self.times.lap(Work::decode);
    self.times.count(Did::decode, bytes.size());
  }
  arrived(slot, &self.times);
}

void Feeder::Inside::finish(Worker& self, Arrival arrival) {
  const Slot& slot = arrival.request.slot;
  if (decoder && !slot.builder->discarded()) {
    try {
      deliver(self, slot, arrival.bytes);
    } catch (const SampleError& error) {
      failed(slot, error.what(), &self.times);
      return;
    }
  }
  keep(self, slot, arrival.request.owned, arrival.bytes);
}

}  // namespace flowos::feed
