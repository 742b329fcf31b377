#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "halo.h"
#include "links.h"
#include "threads.h"

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
#pragma omp parallel num_threads(threads_)
    for (int colour = 0; colour < colours(); colour++)
      turn(colour, colour + 1 < colours(), halo, vector, work);
  }

  // From the last colour to the first, which `back` does to t, and from there to the last, which
  // `forth` does to s. `both` does both to the first colour, where a group's rows have no others
  // before them than those of their own block: it is still in the cache.
  template <class Value, class Back, class Both, class Forth>
  void back_and_forth(Halo<Value>& halo, Value* t, Value* s, const Back& back, const Both& both,
                      const Forth& forth) const {
#pragma omp parallel num_threads(threads_)
    {
      for (int colour = colours() - 1; colour > 0; colour--) turn(colour, true, halo, t, back);
      turn(0, colours() > 1, halo, s, both);
      for (int colour = 1; colour < colours(); colour++)
        turn(colour, colour + 1 < colours(), halo, s, forth);
    }
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
  int colours() const { return static_cast<int>(colours_.size()); }

  // awaited: do other ranks need what this colour wrote?
  template <class Value, class Work>
  void turn(int colour, bool awaited, Halo<Value>& halo, Value* vector, const Work& work) const {
    const ColourLinks& groups = colours_[static_cast<std::size_t>(colour)];
    awaited = awaited && !groups.links.empty();
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

  // This thread's share of the groups.
  template <class Work>
  static void part(const std::vector<std::int32_t>& groups, const Work& work) {
    const auto thread = static_cast<std::size_t>(thread_here());
    const auto threads = static_cast<std::size_t>(threads_here());
    const std::size_t end = groups.size() * (thread + 1) / threads;
    for (std::size_t i = groups.size() * thread / threads; i < end; i++)
      work(static_cast<int>(thread), static_cast<std::int64_t>(groups[i]));
  }

  const std::vector<ColourLinks>& colours_;
  int threads_;
};

}  // namespace flowos::solve
