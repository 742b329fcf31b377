#include "threads/team.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <system_error>
#include <thread>

#include "base/function_ref.h"
#include "ordering/groups.h"

namespace flowos::solve {
namespace {

constexpr std::size_t at(int index) { return static_cast<std::size_t>(index); }

constexpr int kLooks = 2000;  // some 20 to 50 microseconds

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

// Looks so many times, and answers whether it saw a value that is right.
template <class T, class Right>
bool seen(const std::atomic<T>& value, int looks, const Right& right) {
  for (; looks > 0 && !right(value.load(std::memory_order_acquire)); --looks) pause();
  return looks > 0;
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

Team::Team(int threads)
    : size_(std::max(threads, 1)),
      looks_(size_ <= processors() ? kLooks : 0),
      helpers_(static_cast<std::size_t>(size_ - 1)) {
  for (int share = 1; share < size_; ++share) {
    try {
      helpers_[at(share - 1)].thread = std::jthread([this, share] { help(share); });
    } catch (const std::system_error&) {
      size_ = share;
      break;
    }
  }
}

Team::~Team() {
  ended_ = true;
  ++turn_;
  turn_.notify_all();
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

void Team::run(FunctionRef<void(int)> work) {
  if (size_ == 1 || !patience_.calls_others(Patience::Time::clock::now())) {
    for (int share = 0; share < size_; ++share) work(share);
    return;
  }
  work_ = &work;
  left_.store(size_ - 1, std::memory_order_relaxed);
  const unsigned turn = turn_.load(std::memory_order_relaxed) + 1;
  turn_.store(turn, std::memory_order_release);
  turn_.notify_all();
  work(0);
  take_over(work, turn);
  await_others();
}

// Each share of a turn is taken once, by whoever is first; no turn begins before all of the last
// were. So a thread that is late finds that of its turn taken, and leaves `work_` alone.
bool Team::take(int share, unsigned turn) {
  std::atomic<unsigned>& taken = helpers_[at(share - 1)].taken;
  unsigned before = turn - 1;
  return taken.load(std::memory_order_relaxed) == before &&
         taken.compare_exchange_strong(before, turn, std::memory_order_acq_rel);
}

void Team::take_over(FunctionRef<void(int)> work, unsigned turn) {
  for (int share = size_ - 1; share > 0; --share) {
    if (!take(share, turn)) continue;
    work(share);
    left_.fetch_sub(1, std::memory_order_relaxed);
  }
}

void Team::await_others() {
  if (seen(left_, looks_, [](int left) { return left == 0; })) return;
  const auto from = Patience::Time::clock::now();
  for (int left = left_.load(std::memory_order_acquire); left != 0;
       left = left_.load(std::memory_order_acquire)) {
    left_.wait(left, std::memory_order_acquire);
  }
  patience_.waited(from, Patience::Time::clock::now());
}

void Team::help(int share) {
  for (unsigned last = 0;;) {
    if (!seen(turn_, looks_, [&](unsigned turn) { return turn != last; })) {
      turn_.wait(last, std::memory_order_acquire);
    }
    const unsigned turn = turn_.load(std::memory_order_acquire);
    if (turn == last) continue;
    if (ended_) return;
    last = turn;
    if (!take(share, turn)) continue;
    (*work_)(share);
    if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1) left_.notify_one();
  }
}

void share_out(std::int64_t first, std::int64_t past, std::int64_t steps_each, int threads,
               FunctionRef<void(Groups)> work) {
  constexpr std::int64_t kMinEach = 512;
  const std::int64_t count = past - first;
  const std::int64_t worth = std::min<std::int64_t>(count, count * steps_each / kMinEach);
  if (std::min<std::int64_t>(threads, worth) <= 1) {
    if (count > 0) work(Groups{first, past});
    return;
  }
  Team& team = Team::of(threads);
  const std::int64_t all = std::min<std::int64_t>(team.size(), worth);
  team.run([&](int i) {
    if (i < all) work(Groups{first + count * i / all, first + count * (i + 1) / all});
  });
}

}  // namespace flowos::solve
