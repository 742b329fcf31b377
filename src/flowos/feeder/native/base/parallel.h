#pragma once

#include <cstddef>
#include <functional>

namespace flowos::feed {

// Runs `work`, which must not throw, in this thread and in up to `threads` - 1 more, fewer where
// the system has no more; returns when it has returned in all.
void run_in_threads(unsigned threads, const std::function<void()>& work);

// Calls work(i) for each i < count. The first exception ends it, and is thrown here.
void for_each_in_threads(std::size_t count, unsigned threads,
                         const std::function<void(std::size_t)>& work);

}  // namespace flowos::feed
