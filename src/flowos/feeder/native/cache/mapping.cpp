#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "cache/index.h"

namespace flowos::feed::cache {

struct Guarded {
  std::atomic<std::uintptr_t> begin{0};  // 0: free
  std::atomic<std::size_t> bytes{0};
  std::atomic<bool> lost{false};
};

namespace {

// Read by a signal handler: of fixed size, never moved, without locks.
std::array<Guarded, 1024> all_guarded;
std::uintptr_t page_bytes = 4096;
// What was there before ours; of two, so that a handler never reads one that is being written.
std::array<struct sigaction, 2> actions_before;
std::atomic<std::size_t> current_before{0};
std::atomic<bool> handing_on{false};

Guarded* guarded_at(std::uintptr_t address) {
  for (Guarded& guarded : all_guarded) {
    const std::uintptr_t begin = guarded.begin.load();
    if (begin != 0 && address >= begin && address - begin < guarded.bytes.load()) return &guarded;
  }
  return nullptr;
}

// To whom it was before us. Where that comes back to us - it was set by a program that found ours,
// as Python's faulthandler does, and hands on to it - the signal does what it does by itself.
void hand_on(int number, siginfo_t* info, void* context) {
  const struct sigaction& before = actions_before[current_before.load()];
  const bool again = handing_on.exchange(true);
  if (!again && (static_cast<unsigned>(before.sa_flags) & SA_SIGINFO) != 0) {
    before.sa_sigaction(number, info, context);
  } else if (!again && before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
    before.sa_handler(number);
  } else {
    ::signal(number, SIG_DFL);  // the access is tried again, and ends the process as it would have
    if (info->si_code <= 0) ::raise(number);
  }
  handing_on = false;
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

bool is_ours(const struct sigaction& action) {
  return (static_cast<unsigned>(action.sa_flags) & SA_SIGINFO) != 0 &&
         action.sa_sigaction == on_bus_error;
}

// Null: there are too many at once.
Guarded* guard(const std::byte* data, std::size_t bytes) {
  static std::mutex mutex;
  keep_guard();
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

void keep_guard() {
  struct sigaction now{};
  if (::sigaction(SIGBUS, nullptr, &now) != 0 || is_ours(now)) return;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (::sigaction(SIGBUS, nullptr, &now) != 0 || is_ours(now)) return;
  page_bytes = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t other = 1 - current_before.load();
  actions_before[other] = now;
  current_before = other;
  struct sigaction action{};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, nullptr);
}

Mapping::Mapping(int file, std::size_t bytes, bool shared) : bytes_(bytes) {
  void* at =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, shared ? MAP_SHARED : MAP_PRIVATE, file, 0);
  if (at == MAP_FAILED) return;
  guarded_ = guard(static_cast<std::byte*>(at), bytes);
  if (guarded_ == nullptr) {
    ::munmap(at, bytes);
    errno = EMFILE;
    return;
  }
  data_ = static_cast<std::byte*>(at);
}

Mapping::~Mapping() {
  if (data_ == nullptr) return;
  ::munmap(data_, bytes_);
  guarded_->begin = 0;
}

bool Mapping::lost() const { return guarded_ != nullptr && guarded_->lost.load(); }

}  // namespace flowos::feed::cache
