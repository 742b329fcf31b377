#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "cache_index.h"

namespace flowos::feed::cache {

struct Guarded {
  std::atomic<std::uintptr_t> begin{0};  // 0: free
  std::atomic<std::size_t> bytes{0};
  std::atomic<bool> lost{false};
};

namespace {

// Read by a signal handler: of fixed size, never moved, without locks.
std::array<Guarded, 64> all_guarded;
std::uintptr_t page_bytes = 4096;
struct sigaction action_before;

Guarded* guarded_at(std::uintptr_t address) {
  for (Guarded& guarded : all_guarded) {
    const std::uintptr_t begin = guarded.begin.load();
    if (begin != 0 && address >= begin && address - begin < guarded.bytes.load()) return &guarded;
  }
  return nullptr;
}

void hand_on(int number, siginfo_t* info, void* context) {
  if ((static_cast<unsigned>(action_before.sa_flags) & SA_SIGINFO) != 0) {
    action_before.sa_sigaction(number, info, context);
  } else if (action_before.sa_handler != SIG_DFL && action_before.sa_handler != SIG_IGN) {
    action_before.sa_handler(number);
  } else {
    ::signal(number, SIG_DFL);  // the access is tried again, and ends the process as it would have
    if (info->si_code <= 0) ::raise(number);
  }
}

void on_bus_error(int number, siginfo_t* info, void* context) {
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  Guarded* guarded = info->si_code > 0 ? guarded_at(address) : nullptr;
  if (guarded != nullptr) {
    const int error = errno;
    void* page = static_cast<std::byte*>(info->si_addr) - address % page_bytes;
    if (::mmap(page, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
               -1, 0) == page) {
      guarded->lost = true;
      errno = error;
      return;
    }
  }
  hand_on(number, info, context);
}

void guard_once() {
  static std::once_flag once;
  std::call_once(once, [] {
    page_bytes = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    struct sigaction action{};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    ::sigemptyset(&action.sa_mask);
    ::sigaction(SIGBUS, &action, &action_before);
  });
}

// Null: there are too many at once, then it goes without.
Guarded* guard(const std::byte* data, std::size_t bytes) {
  static std::mutex mutex;
  guard_once();
  const std::lock_guard lock(mutex);
  for (Guarded& guarded : all_guarded) {
    if (guarded.begin.load() != 0) continue;
    guarded.lost = false;
    guarded.bytes = bytes;
    guarded.begin = reinterpret_cast<std::uintptr_t>(data);
    return &guarded;
  }
  return nullptr;
}

}  // namespace

Mapping::Mapping(int file, std::size_t bytes, bool shared) : bytes_(bytes) {
  void* at =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, shared ? MAP_SHARED : MAP_PRIVATE, file, 0);
  if (at == MAP_FAILED) return;
  data_ = static_cast<std::byte*>(at);
  guarded_ = guard(data_, bytes);
}

Mapping::~Mapping() {
  if (data_ == nullptr) return;
  ::munmap(data_, bytes_);
  if (guarded_ != nullptr) guarded_->begin = 0;
}

bool Mapping::lost() const { return guarded_ != nullptr && guarded_->lost.load(); }

}  // namespace flowos::feed::cache
