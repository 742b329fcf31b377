#include "base/parallel.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace flowos::feed {

void run_in_threads(unsigned threads, const std::function<void()>& work) {
  std::vector<std::jthread> others;
  others.reserve(threads);
  while (others.size() + 1 < threads) {
    try {
      others.emplace_back(work);
    } catch (const std::system_error&) {
      break;  // the limit of threads: those that there are do it all
    }
  }
  work();
}

void for_each_in_threads(std::size_t count, unsigned threads,
                         const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::exception_ptr failure;
  const auto take_turns = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        work(i);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
        next = count;
      }
    }
  };
  run_in_threads(static_cast<unsigned>(std::min<std::size_t>(threads, count)), take_turns);
  if (failure) std::rethrow_exception(failure);
}

}  // namespace flowos::feed
