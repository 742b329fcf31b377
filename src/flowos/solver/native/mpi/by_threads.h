#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "mpi/threads.h"
#include "ordering/groups.h"

namespace flowos::solve {

// work(first, past) for parts of a list, by as many threads as are worth waking for so many steps.
template <class Item, class Work>
void by_threads_in_parts(int threads, const std::vector<Item>& items, int steps_each,
                         const Work& work) {
  constexpr std::size_t kMinEach = 512;
  const std::size_t worth = items.size() * static_cast<std::size_t>(steps_each) / kMinEach;
  const auto one_of = [&](std::size_t part, std::size_t parts) {
    const Item* all = items.data();
    work(all + items.size() * part / parts, all + items.size() * (part + 1) / parts);
  };
  if (items.empty()) return;
  if (threads == 1 || worth < 2) return one_of(0, 1);
#pragma omp parallel num_threads(threads)
  one_of(static_cast<std::size_t>(thread_here()), static_cast<std::size_t>(threads_here()));
}

// work(item) for a list of groups or aggregates.
template <class Work>
void by_threads(int threads, const std::vector<std::int32_t>& items, int steps_each,
                const Work& work) {
  by_threads_in_parts(threads, items, steps_each,
                      [&](const std::int32_t* item, const std::int32_t* past) {
                        for (; item < past; item++) work(Groups{*item, *item + 1});
                      });
}

}  // namespace flowos::solve
