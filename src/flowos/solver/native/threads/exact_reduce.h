#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "base/exact_sum.h"
#include "ordering/groups.h"
#include "threads/team.h"

namespace flowos::solve {

// The sums of all that work(share, sums) adds to them for shares of [first, past), which do not
// depend on what the shares are.
template <std::size_t count, class Work>
std::array<double, count> sums_over(std::int64_t first, std::int64_t past, std::int64_t steps_each,
                                    int threads, const Work& work) {
  ExactSums<count> all;
  std::mutex adding;
  share_out(first, past, steps_each, threads, [&](Groups share) {
    ExactSums<count> its;
    work(share, its);
    const std::scoped_lock lock(adding);
    for (std::size_t i = 0; i < count; ++i) all[i].add(its[i]);
  });
  std::array<double, count> values;
  for (std::size_t i = 0; i < count; ++i) values[i] = all[i].value();
  return values;
}

}  // namespace flowos::solve
