#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace flowos::solve {

// Uninitialised storage; zero-filling first would cost half the write time.
template <class T>
struct RawAllocator : std::allocator<T> {
  template <class Other>
  struct rebind {
    using other = RawAllocator<Other>;
  };

  template <class U>
  void construct(U* at) {
    ::new (static_cast<void*>(at)) U;
  }
  template <class U, class... Values>
  void construct(U* at, Values&&... values) {
    ::new (static_cast<void*>(at)) U(static_cast<Values&&>(values)...);
  }
};

// For temporary arrays.
template <class T>
using Raw = std::vector<T, RawAllocator<T>>;

// The same for what is gone over again and again: it begins with a cache line, as the vectors that
// lanes are loaded to want it, and lies in huge pages where it is much.
template <class T>
struct LineAllocator : RawAllocator<T> {
  template <class Other>
  struct rebind {
    using other = LineAllocator<Other>;
  };

  T* allocate(std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    void* at = ::operator new(bytes, alignment(bytes));
#if defined(__linux__)
    if (bytes >= kHugeBytes) ::madvise(at, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
#endif
    return static_cast<T*>(at);
  }
  void deallocate(T* at, std::size_t count) { ::operator delete(at, alignment(count * sizeof(T))); }

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
