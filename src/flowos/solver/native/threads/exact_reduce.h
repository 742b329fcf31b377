#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "base/exact_sum.h"
#include "ordering/groups.h"
#include "threads/team.h"

namespace flowos::solve {

template <std::size_t count>
std::array<double, count> values_of(const ExactSums<count>& sums) {
  std::array<double, count> values;
  for (std::size_t i = 0; i < count; ++i) values[i] = sums[i].value();
  return values;
}

// Adds to `sums` all that work(share, sums) adds for shares of [first, past). The result does not
// depend on the shares.
template <std::size_t count, class Work>
void add_over(std::int64_t first, std::int64_t past, std::int64_t steps_each, int threads,
              const Work& work, ExactSums<count>& sums) {
  std::mutex adding;
  share_out(first, past, steps_each, threads, [&](Groups share) {
    ExactSums<count> partial;
    work(share, partial);
    const std::scoped_lock lock(adding);
    for (std::size_t i = 0; i < count; ++i) sums[i].add(partial[i]);
  });
}

template <std::size_t count, class Work>
std::array<double, count> sums_over(std::int64_t first, std::int64_t past, std::int64_t steps_each,
                                    int threads, const Work& work) {
  ExactSums<count> sums;
  add_over(first, past, steps_each, threads, work, sums);
  return values_of(sums);
}

}  // namespace flowos::solve
