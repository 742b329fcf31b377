#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace flowos::feed {

// Memory for the samples of one batch: address space is reserved at once, pages come when they
// are written. Its address changes only by `reserve`.
class Arena {
 public:
  Arena() = default;
  ~Arena();
  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&& other) noexcept;

  // So many bytes at least. std::bad_alloc. Where it has to grow, what was in it is lost.
  void reserve(std::size_t bytes);
  std::byte* data() const { return data_; }
  std::size_t capacity() const { return capacity_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t capacity_ = 0;
};

// A minibatch: as many samples as Share::size_of says (fewer where some were skipped), in the
// epoch's order.
struct Batch {
  std::uint64_t epoch = 0;
  std::uint64_t number = 0;                    // of this rank, since the last seek
  std::vector<std::int64_t> samples;           // which they are
  std::vector<std::int64_t> offsets, lengths;  // their places in the arena, in bytes
  Arena arena;
  std::size_t used_bytes = 0;
  // The memory has no other reader. (What goes to the cache as it came is read from here, also
  // after the batch was handed over.)
  bool writable = false;
};

}  // namespace flowos::feed
