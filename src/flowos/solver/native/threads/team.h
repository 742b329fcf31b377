#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "base/function_ref.h"
#include "ordering/groups.h"
#include "threads/patience.h"

namespace flowos::solve {

// The number of threads; 0: OMP_NUM_THREADS where it is set, else one per processor.
int threads_of(int wanted);

// Threads that are called together so often that it must cost little: they look for work for some
// microseconds before they sleep. A thread that has not begun is not waited for: the calling thread
// takes its share over. Not OpenMP's, as ThreadSanitizer understands these, and as they do not hang
// in a forked child.
class Team {
 public:
  explicit Team(int threads);  // with the one that calls; fewer where the system has no more
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  // That of the calling thread, which keeps it.
  static Team& of(int threads);

  int size() const { return size_; }
  // Calls work(share), which must not throw, for each share < size(), and returns when all have
  // returned: in a thread each, or several in this one. Of one thread at a time.
  void run(FunctionRef<void(int)> work);

 private:
  struct Helper {
    alignas(64) std::atomic<unsigned> taken = 0;  // the last turn whose share someone has
    std::jthread thread;
  };

  void help(int share);
  bool take(int share, unsigned turn);
  void take_over(FunctionRef<void(int)> work, unsigned turn);
  void await_others();

  int size_;
  int looks_;  // before a thread sleeps
  Patience patience_;
  const FunctionRef<void(int)>* work_ = nullptr;  // of this turn
  std::atomic<bool> ended_ = false;
  alignas(64) std::atomic<unsigned> turn_ = 0;
  alignas(64) std::atomic<int> left_ = 0;  // shares that helpers may have
  std::vector<Helper> helpers_;            // of share 1 and so on
};

// Calls work with shares of [first, past), by as many threads as are worth waking.
void share_out(std::int64_t first, std::int64_t past, std::int64_t steps_each, int threads,
               FunctionRef<void(Groups)> work);

}  // namespace flowos::solve
