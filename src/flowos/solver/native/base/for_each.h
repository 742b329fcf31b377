#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>

#include "base/at_once.h"
#include "base/pauses.h"

namespace flowos::solve {

constexpr std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

// What is thrown by it is thrown here, and `next` put to the end.
inline void look_up(std::atomic<std::int64_t>& next, std::int64_t end) {
  try {
    Pauses::look();
  } catch (...) {
    next = end;
    throw;
  }
}

// Calls work(part) for each part < parts, of which the threads take the next when they have done
// one. What a part is must not depend on how many threads there are. The one that calls looks up
// from it between parts (Pauses); when that throws, no more parts are begun.
template <class Work>
void for_parts(std::int64_t parts, int threads, const Work& work) {
  const std::int64_t all = threads > 0 ? threads : std::thread::hardware_concurrency();
  std::atomic<std::int64_t> next = 0;
  at_once(static_cast<int>(std::clamp<std::int64_t>(all, 1, std::max<std::int64_t>(parts, 1))),
          [&](int thread) {
            for (std::int64_t part = next++; part < parts; part = next++) {
              if (thread == 0) look_up(next, parts);
              work(part);
            }
          });
}

// The same for [0, count) in runs of `length`: work(first, end).
template <class Work>
void for_runs(std::int64_t count, std::int64_t length, int threads, const Work& work) {
  for_parts((count + length - 1) / length, threads,
            [&](std::int64_t part) { work(part * length, std::min(count, (part + 1) * length)); });
}

}  // namespace flowos::solve
