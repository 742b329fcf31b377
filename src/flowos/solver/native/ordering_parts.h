#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <thread>

#include "at_once.h"
#include "matrix_error.h"

namespace flowos::solve {

constexpr std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

// Calls work(part) for each part < parts, of which the threads take the next when they have done
// one. What a part is must not depend on how many threads there are.
template <class Work>
void for_parts(std::int64_t parts, int threads, const Work& work) {
  const std::int64_t all = threads > 0 ? threads : std::thread::hardware_concurrency();
  std::atomic<std::int64_t> next = 0;
  at_once(static_cast<int>(std::clamp<std::int64_t>(all, 1, std::max<std::int64_t>(parts, 1))),
          [&](int) {
            for (std::int64_t part = next++; part < parts; part = next++) work(part);
          });
}

// The same for [0, count) in runs of `length`: work(first, end).
template <class Work>
void for_runs(std::int64_t count, std::int64_t length, int threads, const Work& work) {
  for_parts((count + length - 1) / length, threads,
            [&](std::int64_t part) { work(part * length, std::min(count, (part + 1) * length)); });
}

// Places are counted with 32 bits.
inline void check_places(std::int64_t groups, int block_rows, int lanes) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  if (groups > kMost / block_rows / lanes) {
    throw MatrixError("the matrix is too large: with padding it has more than 2147483647 rows");
  }
}

}  // namespace flowos::solve
