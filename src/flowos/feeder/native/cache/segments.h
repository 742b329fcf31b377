#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <span>
#include <string>
#include <unordered_map>

#include "base/unique_fd.h"
#include "cache/cache.h"
#include "cache/folder.h"
#include "cache/index.h"
#include "cache/layout.h"

namespace flowos::feed::cache {

// Where the bytes of a sample are.
struct SlotRange {
  std::uint32_t segment = 0;
  std::uint32_t first = 0;  // slot
  std::uint32_t slots = 0;  // 0: a sample without bytes, which is nowhere
};

// The files of samples. Room is taken in segments, reserved with the file system as a whole; near
// the end of the room they get smaller, so that what one process has reserved and not used is
// little (as of guided self-scheduling, Polychronopoulos and Kuck, 1987).
class Segments {
 public:
  enum class Found {
    right,
    wrong,       // other bytes than were written
    gone,        // the file, or that part of it
    unreadable,  // now; it may be there
  };

  Segments(const Folder& folder, const SharedIndex& index, const Cache::Limits& limits,
           Complaint& complaint, bool writable);

  // Writes them into this lane, or elsewhere when it has no room; nothing: there is none.
  // `sharers`: processes that want some.
  std::optional<SlotRange> keep(std::span<const std::byte> bytes, std::uint32_t lane,
                                std::uint32_t sharers);
  Found read(const SlotRange& range, std::span<std::byte> into, std::uint32_t crc);
  // Gives the room back.
  void release(const SlotRange& range);
  std::uint64_t evicted_bytes() const { return evicted_bytes_.load(); }

 private:
  using File = std::shared_ptr<const Descriptor>;

  File open(std::uint32_t number);  // null with errno
  void keep_open(std::uint32_t number, const File& file);
  void forget_removed();

  int write(const SlotRange& range, std::span<const std::byte> bytes);
  std::optional<SlotRange> allocate(std::uint64_t bytes, std::uint32_t lane, std::uint32_t sharers);
  std::optional<SlotRange> take(std::atomic<std::uint64_t>& lane, std::uint32_t slots);
  std::optional<SlotRange> grow(std::atomic<std::uint64_t>& lane, std::uint32_t slots,
                                std::uint32_t sharers, std::string& why);
  std::optional<std::uint32_t> new_segment(std::uint32_t slots, std::uint32_t sharers,
                                           std::string& why);
  std::optional<std::uint32_t> make_segment(std::uint32_t slots, std::uint32_t sharers,
                                            std::string& why);
  bool evict();
  bool may_hold(std::uint64_t bytes) const;
  std::uint64_t room(std::string& why) const;
  bool hold(std::uint64_t bytes);
  std::uint32_t new_number();
  int make_file(std::uint32_t number, std::uint64_t bytes);
  void leave(Lane lane);
  void abandon(std::uint32_t number);
  void lessen(std::uint32_t number, std::uint32_t slots);
  bool open_in_a_lane(std::uint32_t number) const;
  void remove(std::uint32_t number);
  void give_back(SegmentRecord& record, std::uint32_t slots);

  const Folder& folder_;
  const SharedIndex& index_;
  const Cache::Limits limits_;
  Complaint& complaint_;
  const bool writable_;
  const std::size_t max_open_;
  std::mutex growing_;
  std::atomic<std::uint64_t> evicted_bytes_{0};
  std::shared_mutex files_mutex_;
  std::unordered_map<std::uint32_t, File> files_;
};

}  // namespace flowos::feed::cache
