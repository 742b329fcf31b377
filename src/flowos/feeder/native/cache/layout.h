#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

// What stands in the file `index` of a cache, which all its processes have mapped. The order of
// bytes is the machine's: a cache is local to a node.
namespace flowos::feed::cache {

inline constexpr std::uint64_t kMagic = 0x3148434143574C46;  // "FLWCACH1"
inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::uint64_t kSlotBytes = 4096;  // samples start at multiples of it
inline constexpr std::uint32_t kProcesses = 1024;  // at once
inline constexpr std::uint32_t kSegments = 1 << 16;
inline constexpr std::uint32_t kLanes = 8;
inline constexpr std::uint64_t kMaxSamples = 1ULL << 40;

enum class State : std::uint8_t {
  empty,
  fetching,  // by its owner; where that is dead the claim is to be taken over
  writing,   // likewise
  ready,
  unverified,  // ready, but written before the machine's last start
};

// The state of a sample as one atomic word, of which a waiter sleeps on the lower half. Claimed: by
// the process of this slot, with the slot's generation, so that a later process in the same slot is
// another one. Kept: as which publication, so that a later one of the same sample is another one.
struct Word {
  State state = State::empty;
  std::uint16_t slot = 0;
  std::uint32_t generation = 0;

  static constexpr Word of(std::uint64_t bits) {
    return {static_cast<State>(bits & 0xFF), static_cast<std::uint16_t>(bits >> 16),
            static_cast<std::uint32_t>(bits >> 32)};
  }
  constexpr std::uint64_t bits() const {
    return static_cast<std::uint64_t>(state) | static_cast<std::uint64_t>(slot) << 16 |
           static_cast<std::uint64_t>(generation) << 32;
  }
  constexpr bool kept() const { return state == State::ready || state == State::unverified; }
  constexpr bool claimed() const { return state == State::fetching || state == State::writing; }
};

struct Entry {
  std::atomic<std::uint64_t> word;
  std::atomic<std::uint64_t> length;   // bytes
  std::atomic<std::uint32_t> segment;  // its number; of no meaning where length is 0
  std::atomic<std::uint32_t> first;    // slot of the segment
  std::atomic<std::uint32_t> crc;
  std::uint32_t unused;
};

// Where a segment is continued: its number and its first slot that is free. Whoever needs room
// takes it by one atomic exchange, so that no room belongs to a process and none is lost with it.
struct Lane {
  std::uint32_t segment = 0;  // 0: none
  std::uint32_t next = 0;

  static constexpr Lane of(std::uint64_t bits) {
    return {static_cast<std::uint32_t>(bits >> 32), static_cast<std::uint32_t>(bits)};
  }
  constexpr std::uint64_t bits() const { return static_cast<std::uint64_t>(segment) << 32 | next; }
};

// In slots. A segment has the record number modulo kSegments; numbers are not used again.
struct SegmentRecord {
  std::atomic<std::uint32_t> number;  // 0: this record is free
  std::atomic<std::uint32_t> capacity;
  std::atomic<std::uint32_t> live;  // taken and not dropped; may be too many, never too few
  std::atomic<std::uint32_t> held;  // that the file system gives for it
};

// Immutable.
struct Identity {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t crc;  // of what follows
  std::uint64_t samples;
  std::uint64_t fingerprint;
};

struct Header {
  Identity identity;
  std::array<char, 40> boot;  // the machine's start; changed only by a process that is alone
  std::atomic<std::uint64_t> held_bytes;  // of all segments
  std::atomic<std::uint32_t> last_segment;
  std::atomic<std::uint32_t> slots_used;  // ever: slots from here on are free
  std::atomic<std::uint32_t> drops;
  std::atomic<std::uint32_t> publications;
  std::array<std::atomic<std::uint64_t>, kLanes> lanes;
};

struct Index {
  alignas(4096) Header header;
  alignas(4096) std::array<std::atomic<std::uint32_t>, kProcesses> generations;
  std::array<SegmentRecord, kSegments> segments;
  // The entries follow.
};

static_assert(sizeof(Entry) == 32 && sizeof(SegmentRecord) == 16 && sizeof(Identity) == 32);
static_assert(sizeof(Index) == 8192 + 16 * kSegments);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free &&
              std::atomic<std::uint32_t>::is_always_lock_free);
static_assert(std::endian::native == std::endian::little, "a futex is the lower half of a word");

constexpr std::uint64_t slots_for(std::uint64_t bytes) {
  return bytes / kSlotBytes + (bytes % kSlotBytes != 0 ? 1 : 0);
}

constexpr std::uint64_t index_bytes(std::uint64_t samples) {
  return sizeof(Index) + samples * sizeof(Entry);
}

}  // namespace flowos::feed::cache
