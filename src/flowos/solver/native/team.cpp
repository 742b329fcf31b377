#include "team.h"

#include <sched.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <memory>
#include <system_error>
#include <thread>

namespace flowos::solve {
namespace {

constexpr int kLooks = 2000;  // before a thread sleeps: some 20 to 50 microseconds

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

int processors() {
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(CPU_COUNT(&set), 1);
#endif
  return static_cast<int>(std::max(std::thread::hardware_concurrency(), 1U));
}

// In a forked child, where its threads are not.
void leave(std::unique_ptr<Team>& team) { [[maybe_unused]] Team* const lost = team.release(); }

}  // namespace

int threads_of(int wanted) {
  if (wanted > 0) return wanted;
  const char* const set = std::getenv("OMP_NUM_THREADS");
  const long threads = set == nullptr ? 0 : std::strtol(set, nullptr, 10);
  return threads > 0 && threads <= 4096 ? static_cast<int>(threads) : processors();
}

Team::Team(int threads) : size_(std::max(threads, 1)) {
  const int wanted = size();
  for (int thread = 1; thread < wanted; ++thread) {
    try {
      others_.emplace_back([this, thread] {
        for (wait(); work_ != nullptr; wait()) {
          (*work_)(thread);
          wait();
        }
      });
    } catch (const std::system_error&) {
      size_.store(thread, std::memory_order_relaxed);
      break;
    }
  }
}

Team::~Team() {
  work_ = nullptr;
  wait();
}

Team& Team::of(int threads) {
  struct Kept {
    std::unique_ptr<Team> team;
    int threads = 0;
    pid_t process = 0;
    ~Kept() {
      if (process != getpid()) leave(team);
    }
  };
  thread_local Kept kept;
  if (kept.process != getpid()) leave(kept.team);
  if (!kept.team || kept.threads != threads) {
    kept.team.reset();
    kept.team = std::make_unique<Team>(threads);
    kept.threads = threads;
    kept.process = getpid();
  }
  return *kept.team;
}

void Team::run(const std::function<void(int)>& work) {
  if (size() == 1) {
    work(0);
    return;
  }
  work_ = &work;
  wait();
  work(0);
  wait();
}

// Until all are here.
void Team::wait() {
  const unsigned turn = turn_.load(std::memory_order_relaxed);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == size()) {
    arrived_.store(0, std::memory_order_relaxed);
    turn_.store(turn + 1, std::memory_order_release);
    turn_.notify_all();
    return;
  }
  for (int look = 0; look < kLooks; ++look) {
    if (turn_.load(std::memory_order_acquire) != turn) return;
    pause();
  }
  while (turn_.load(std::memory_order_acquire) == turn) {
    turn_.wait(turn, std::memory_order_acquire);
  }
}

}  // namespace flowos::solve
