#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

namespace flowos::feed {

// Memory for the samples of one batch: address space is reserved at once, pages come when they
// are written. Its address changes only by `reserve`.
class Arena {
 public:
  Arena() = default;
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  void reserve(std::size_t bytes);  // std::bad_alloc; what was in it is lost
  std::byte* data() const { return data_; }
  std::size_t capacity() const { return capacity_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t capacity_ = 0;
};

// A minibatch: as many samples as Share::size_of says, in the epoch's order.
struct Batch {
  std::uint64_t epoch = 0;
  std::uint64_t number = 0;  // within the epoch, of this rank
  std::vector<std::int64_t> samples;           // which they are
  std::vector<std::int64_t> offsets, lengths;  // their places in the arena, in bytes
  Arena arena;
  std::size_t used_bytes = 0;
};

}  // namespace flowos::feed
