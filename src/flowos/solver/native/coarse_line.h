#pragma once

#include <cstddef>
#include <new>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace flowos::solve {

// Memory that begins with a cache line, as the vectors that lanes are loaded to want it, and in
// huge pages where it is much: faults of small ones would cost more than what is written. What is
// not given a value has none.
template <class T>
struct LineAllocator {
  using value_type = T;

  LineAllocator() = default;
  template <class Other>
  explicit LineAllocator(const LineAllocator<Other>&) {}

  T* allocate(std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    void* at = ::operator new(bytes, alignment(bytes));
#if defined(__linux__)
    if (bytes >= kHugeBytes) ::madvise(at, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
#endif
    return static_cast<T*>(at);
  }
  void deallocate(T* at, std::size_t count) { ::operator delete(at, alignment(count * sizeof(T))); }
  template <class U>
  void construct(U* at) {
    ::new (static_cast<void*>(at)) U;
  }
  template <class U, class... Values>
  void construct(U* at, Values&&... values) {
    ::new (static_cast<void*>(at)) U(static_cast<Values&&>(values)...);
  }
  bool operator==(const LineAllocator&) const { return true; }

 private:
  static constexpr std::size_t kLine = 64, kHugePage = std::size_t{2} << 20;
  static constexpr std::size_t kHugeBytes = 2 * kHugePage;

  static std::align_val_t alignment(std::size_t bytes) {
    return std::align_val_t{bytes >= kHugeBytes ? kHugePage : kLine};
  }
};

template <class T>
using Line = std::vector<T, LineAllocator<T>>;

}  // namespace flowos::solve
