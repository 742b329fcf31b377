#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>

#include "coarse_kernels.h"

namespace flowos::solve {

inline int threads_of(int wanted) { return wanted > 0 ? wanted : omp_get_max_threads(); }

// Calls work with shares of [first, past), by as many threads as are worth waking.
template <class Work>
void share_out(std::int64_t first, std::int64_t past, std::int64_t steps_each, int threads,
               const Work& work) {
  constexpr std::int64_t kLeastEach = 512;
  const std::int64_t count = past - first;
  const int parts =
      static_cast<int>(std::min<std::int64_t>({threads, count, count * steps_each / kLeastEach}));
  if (parts <= 1) {
    if (count > 0) work(Groups{first, past});
    return;
  }
#pragma omp parallel num_threads(parts)
  {
    const std::int64_t i = omp_get_thread_num(), all = omp_get_num_threads();
    work(Groups{first + count * i / all, first + count * (i + 1) / all});
  }
}

}  // namespace flowos::solve
