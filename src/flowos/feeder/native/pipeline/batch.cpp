#include "pipeline/batch.h"

#include <sys/mman.h>

#include <cstddef>
#include <new>
#include <utility>

namespace flowos::feed {

Arena::~Arena() {
  if (data_ != nullptr) munmap(data_, capacity_);
}

Arena::Arena(Arena&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), capacity_(std::exchange(other.capacity_, 0)) {}

Arena& Arena::operator=(Arena&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(capacity_, other.capacity_);
  return *this;
}

void Arena::reserve(std::size_t bytes) {
  constexpr std::size_t kPage = std::size_t{64} << 10;
  if (bytes <= capacity_) return;
  const std::size_t capacity = (bytes + kPage - 1) / kPage * kPage;
  if (capacity < bytes) throw std::bad_alloc();
  void* data = mmap(nullptr, capacity, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) throw std::bad_alloc();
  if (data_ != nullptr) munmap(data_, capacity_);
  data_ = static_cast<std::byte*>(data);
  capacity_ = capacity;
}

}  // namespace flowos::feed
