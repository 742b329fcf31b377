// The half of Segments that finds room: lanes, new segments, and what becomes of old ones.

#include <asm-generic/errno.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "base/unique_fd.h"
#include "cache/evict.h"
#include "cache/folder.h"
#include "cache/layout.h"
#include "cache/segments.h"

namespace flowos::feed::cache {
namespace {

constexpr std::uint64_t kMinSegment = 4 << 20;
constexpr std::uint64_t kMaxSegment = 1ULL << 40;

std::uint64_t whole_slots(std::uint64_t bytes) { return bytes / kSlotBytes * kSlotBytes; }

// After a size that was refused; 0: there is none left to try.
std::uint64_t next_smaller(std::uint64_t size, std::uint64_t needed) {
  return size <= needed ? 0 : std::max(needed, whole_slots(size / 4));
}

}  // namespace

std::optional<SlotRange> Segments::allocate(std::uint64_t bytes, std::uint32_t lane,
                                            std::uint32_t sharers) {
  if (bytes == 0) return SlotRange{};
  if (slots_for(bytes) > std::numeric_limits<std::uint32_t>::max() / 2) return std::nullopt;
  const auto slots = static_cast<std::uint32_t>(slots_for(bytes));
  auto& lanes = index_.header().lanes;
  if (auto range = take(lanes[lane], slots)) return range;
  std::string why;
  {
    const std::lock_guard lock(growing_);
    if (auto range = take(lanes[lane], slots)) return range;  // another thread has grown it
    if (auto range = grow(lanes[lane], slots, sharers, why)) return range;
  }
  for (auto& other : lanes) {
    if (auto range = take(other, slots)) return range;
  }
  complaint_.say("cache " + folder_.path + ": " + why +
                 "; what is not in it is read from the source");
  return std::nullopt;
}

std::optional<SlotRange> Segments::take(std::atomic<std::uint64_t>& lane, std::uint32_t slots) {
  std::uint64_t seen = lane.load();
  for (;;) {
    const Lane at = Lane::of(seen);
    SegmentRecord& record = index_.record(at.segment);
    if (at.segment == 0 || record.number.load() != at.segment) return std::nullopt;
    if (std::uint64_t{at.next} + slots > record.capacity.load()) return std::nullopt;
    record.live += slots;  // before it is ours, so that the segment is never seen unused
    const Lane after{at.segment, at.next + slots};
    if (lane.compare_exchange_strong(seen, after.bits()))
      return SlotRange{at.segment, at.next, slots};
    lessen(at.segment, slots);
  }
}

std::optional<SlotRange> Segments::grow(std::atomic<std::uint64_t>& lane, std::uint32_t slots,
                                        std::uint32_t sharers, std::string& why) {
  const std::optional<std::uint32_t> number = new_segment(slots, sharers, why);
  if (!number) return std::nullopt;
  std::uint64_t seen = lane.load();
  for (;;) {
    if (auto range = take(lane, slots)) {  // another process was faster
      lessen(*number, slots);
      return range;
    }
    // It fails too where a smaller sample has just found room in what is left.
    if (!lane.compare_exchange_strong(seen, Lane{*number, slots}.bits())) continue;
    leave(Lane::of(seen));
    return SlotRange{*number, 0, slots};
  }
}

std::optional<std::uint32_t> Segments::new_segment(std::uint32_t slots, std::uint32_t sharers,
                                                   std::string& why) {
  for (;;) {
    if (const auto number = make_segment(slots, sharers, why)) return number;
    // What this cache may hold at most no other gives it.
    if (!may_hold(slots * kSlotBytes) || !evict()) return std::nullopt;
  }
}

bool Segments::may_hold(std::uint64_t bytes) const {
  return limits_.max_bytes == 0 || index_.header().held_bytes.load() + bytes <= limits_.max_bytes;
}

bool Segments::evict() {
  const std::uint64_t bytes = evict_oldest(limits_.neighbours, folder_.path);
  evicted_bytes_ += bytes;
  return bytes != 0;
}

std::optional<std::uint32_t> Segments::make_segment(std::uint32_t slots, std::uint32_t sharers,
                                                    std::string& why) {
  forget_removed();
  const std::uint64_t needed = slots * kSlotBytes;
  const std::uint64_t there = whole_slots(std::min(room(why), max_file_bytes()));
  if (there < needed) return std::nullopt;
  const std::uint64_t part = std::max(kMinSegment, whole_slots(there / (2ULL * sharers)));
  // As much again as there is: a small data set takes no large one.
  const std::uint64_t held = std::max(kMinSegment, index_.header().held_bytes.load());
  const std::uint64_t usual = std::min({limits_.segment_bytes, kMaxSegment, held});
  std::uint64_t size =
      std::min({there, std::max(part, needed), std::max(whole_slots(usual), needed)});
  for (; size != 0; size = next_smaller(size, needed)) {
    if (!hold(size)) continue;
    const std::uint32_t number = new_number();
    const int error = number == 0 ? ENOSPC : make_file(number, size);
    if (error == 0) {
      SegmentRecord& record = index_.record(number);
      record.capacity = static_cast<std::uint32_t>(size / kSlotBytes);
      record.held = static_cast<std::uint32_t>(size / kSlotBytes);
      record.live = slots;
      return number;
    }
    index_.header().held_bytes -= size;
    if (number != 0) index_.record(number).number = 0;
    why = "no more room can be reserved: " + reason(error);
    if (error != ENOSPC && error != EDQUOT && error != EFBIG) break;
  }
  return std::nullopt;
}

// How much more this cache may take; `why`: where that is the end of it.
std::uint64_t Segments::room(std::string& why) const {
  std::uint64_t bytes = std::numeric_limits<std::int64_t>::max();
  if (limits_.max_bytes != 0) {
    const std::uint64_t held = index_.header().held_bytes.load();
    bytes = limits_.max_bytes - std::min(held, limits_.max_bytes);
    why = "it has the " + readable(limits_.max_bytes) + " that it may take";
  }
  struct statvfs system{};
  if (::fstatvfs(folder_.at.get(), &system) == 0 && system.f_blocks != 0) {
    const std::uint64_t free = system.f_bavail * system.f_frsize;
    const std::uint64_t ours = free - std::min(free, limits_.min_free_bytes);
    if (ours < bytes) {
      bytes = ours;
      why = "its file system has " + readable(free) + " left, of which " +
            readable(limits_.min_free_bytes) + " are to stay free";
    }
  }
  return bytes;
}

bool Segments::hold(std::uint64_t bytes) {
  std::atomic<std::uint64_t>& held = index_.header().held_bytes;
  const std::uint64_t now = held.fetch_add(bytes) + bytes;
  if (limits_.max_bytes == 0 || now <= limits_.max_bytes) return true;
  held -= bytes;
  return false;
}

// 0: there are as many segments as there can be.
std::uint32_t Segments::new_number() {
  for (std::uint32_t tries = 0; tries < kSegments; ++tries) {
    const std::uint32_t number = ++index_.header().last_segment;
    std::uint32_t nobody = 0;
    if (number != 0 && index_.record(number).number.compare_exchange_strong(nobody, number)) {
      return number;
    }
  }
  return 0;
}

// An errno, 0: done.
int Segments::make_file(std::uint32_t number, std::uint64_t bytes) {
  const std::string name = segment_name(number);
  ::unlinkat(folder_.at.get(), name.c_str(), 0);  // numbers are not reused
  Descriptor file(::openat(folder_.at.get(), name.c_str(),
                           O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return errno;
  int error = reserve(file.get(), bytes);
  // Then a full file system is met when a sample is written.
  if (error == EOPNOTSUPP || error == ENOSYS) {
    error = ::ftruncate(file.get(), static_cast<off_t>(bytes)) == 0 ? 0 : errno;
  }
  if (error != 0) {
    ::unlinkat(folder_.at.get(), name.c_str(), 0);
    return error;
  }
  keep_open(number, std::make_shared<const Descriptor>(std::move(file)));
  return 0;
}

// The segment is closed to new slots: the rest of it is released.
void Segments::leave(Lane lane) {
  SegmentRecord& record = index_.record(lane.segment);
  if (lane.segment == 0 || record.number.load() != lane.segment) return;
  const std::uint32_t rest = record.capacity.load() - std::min(lane.next, record.capacity.load());
  const File file = rest != 0 ? open(lane.segment) : nullptr;
  if (file && ::ftruncate(file->get(), static_cast<off_t>(lane.next * kSlotBytes)) == 0) {
    record.capacity = lane.next;
    give_back(record, rest);
  }
  if (record.live.load() == 0) remove(lane.segment);
}

// It is closed to new slots.
void Segments::abandon(std::uint32_t number) {
  for (auto& lane : index_.header().lanes) {
    std::uint64_t seen = lane.load();
    if (Lane::of(seen).segment == number && lane.compare_exchange_strong(seen, 0)) {
      leave(Lane::of(seen));
    }
  }
}

void Segments::lessen(std::uint32_t number, std::uint32_t slots) {
  SegmentRecord& record = index_.record(number);
  if (record.number.load() != number) return;
  if (record.live.fetch_sub(slots) == slots && !open_in_a_lane(number)) remove(number);
}

bool Segments::open_in_a_lane(std::uint32_t number) const {
  const auto& lanes = index_.header().lanes;
  return std::any_of(lanes.begin(), lanes.end(), [number](const auto& lane) {
    return Lane::of(lane.load()).segment == number;
  });
}

void Segments::remove(std::uint32_t number) {
  SegmentRecord& record = index_.record(number);
  const std::uint32_t held = record.held.load();
  std::uint32_t still = number;
  if (!record.number.compare_exchange_strong(still, 0)) return;  // another one does it
  index_.header().held_bytes -= held * kSlotBytes;
  remove_file(folder_, segment_name(number));
  const std::unique_lock lock(files_mutex_);
  files_.erase(number);
}

void Segments::give_back(SegmentRecord& record, std::uint32_t slots) {
  record.held -= slots;
  index_.header().held_bytes -= slots * kSlotBytes;
}

}  // namespace flowos::feed::cache
