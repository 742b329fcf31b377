#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "coarse_kernels.h"

namespace flowos::solve {

// How many are wanted; 0: OMP_NUM_THREADS where it is set, else one for each processor there is.
int threads_of(int wanted);

// Threads that are called together and wait for each other so often that it must cost little: they
// look for each other for some microseconds before they sleep. Not OpenMP's, as ThreadSanitizer
// understands these, and as they do not hang in a forked child.
class Team {
 public:
  explicit Team(int threads);  // with the one that calls; fewer where the system has no more
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  // That of the calling thread, which keeps it.
  static Team& of(int threads);

  int size() const { return size_.load(std::memory_order_relaxed); }
  // Calls work(thread), which must not throw, in each, and returns when all have returned.
  void run(const std::function<void(int)>& work);

 private:
  void wait();

  std::atomic<int> size_;
  std::atomic<int> arrived_ = 0;
  std::atomic<unsigned> turn_ = 0;
  const std::function<void(int)>* work_ = nullptr;  // null: they end
  std::vector<std::jthread> others_;
};

// Calls work with shares of [first, past), by as many threads as are worth waking.
template <class Work>
void share_out(std::int64_t first, std::int64_t past, std::int64_t steps_each, int threads,
               const Work& work) {
  constexpr std::int64_t kLeastEach = 512;
  const std::int64_t count = past - first;
  const std::int64_t worth = std::min<std::int64_t>(count, count * steps_each / kLeastEach);
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
