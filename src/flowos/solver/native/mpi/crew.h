#pragma once

#include <omp.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "halo.h"
#include "links.h"

namespace flowos::solve {

// The threads of a rank: they go through its own groups, colour by colour. What other ranks wait
// for is computed first and is under way while the rest is computed.
class Crew {
 public:
  Crew(const std::vector<ColourLinks>& colours, int threads)
      : colours_(colours), threads_(threads) {}

  int threads() const { return threads_; }

  // work(thread, group) writes lines of `vector` from those of the same block and of earlier
  // colours.
  template <class Value, class Work>
  void forward(Halo<Value>& halo, Value* vector, const Work& work) const {
    const int count = static_cast<int>(colours_.size());
    go(count, [](int turn) { return turn; }, halo, vector, work);
  }
  // The same from the last colour to the first.
  template <class Value, class Work>
  void backward(Halo<Value>& halo, Value* vector, const Work& work) const {
    const int count = static_cast<int>(colours_.size());
    go(count, [count](int turn) { return count - 1 - turn; }, halo, vector, work);
  }
  // All own groups in any order.
  template <class Work>
  void each(const Work& work) const {
#pragma omp parallel num_threads(threads_)
    for (const ColourLinks& colour : colours_) {
      part(colour.first, work);
      part(colour.rest, work);
    }
  }

 private:
  template <class ColourOf, class Value, class Work>
  void go(int count, const ColourOf& colour_of_turn, Halo<Value>& halo, Value* vector,
          const Work& work) const {
#pragma omp parallel num_threads(threads_)
    for (int turn = 0; turn < count; turn++) {
      const int colour = colour_of_turn(turn);
      const ColourLinks& groups = colours_[static_cast<std::size_t>(colour)];
      const bool awaited = turn + 1 < count && !groups.links.empty();
      part(groups.first, work);
      if (awaited) {
#pragma omp barrier
#pragma omp master
        halo.begin(colour, vector);
      }
      part(groups.rest, work);
      if (awaited) {
#pragma omp master
        halo.end(colour, vector);
      }
#pragma omp barrier
    }
  }

  // This thread's share of the groups.
  template <class Work>
  static void part(const std::vector<std::int32_t>& groups, const Work& work) {
    const auto thread = static_cast<std::size_t>(omp_get_thread_num());
    const auto threads = static_cast<std::size_t>(omp_get_num_threads());
    const std::size_t end = groups.size() * (thread + 1) / threads;
    for (std::size_t i = groups.size() * thread / threads; i < end; i++)
      work(static_cast<int>(thread), static_cast<std::int64_t>(groups[i]));
  }

  const std::vector<ColourLinks>& colours_;
  int threads_;
};

}  // namespace flowos::solve
