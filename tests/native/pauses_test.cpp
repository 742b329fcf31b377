// A long computation calls back now and then: an exception of the callback ends it.

#include "base/pauses.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <thread>

#include "base/for_each.h"
#include "check.h"
#include "krylov/solver.h"
#include "matrix/generate.h"
#include "systems.h"

using namespace flowos::solve;

namespace {

constexpr std::int64_t kMany = 1'000'000;

struct Enough : std::runtime_error {
  Enough() : std::runtime_error("enough") {}
};

// How often `work` looked up before it ended, where the last of so many looks throws.
template <class Work>
int looks_of(int most, const Work& work) {
  int looks = 0;
  try {
    const Pauses pauses([&] {
      if (++looks == most) throw Enough();
    });
    work();
  } catch (const Enough&) {
    CHECK(looks == most);
  }
  return looks;
}

// How many parts are done where the calling thread's second look throws. The other threads have
// a part each, and as many more as they begin until they hear of it: on a busy machine, that may
// take the calling thread seconds.
std::int64_t parts_until_second_look(int threads) {
  const auto here = std::this_thread::get_id();
  std::atomic<std::int64_t> done = 0;
  std::atomic<bool> ended = false;
  int looks = 0;
  try {
    const Pauses pauses([&] {
      if (++looks < 2) return;
      ended = true;
      throw Enough();
    });
    for_parts(kMany, threads, [&](std::int64_t) {
      while (std::this_thread::get_id() != here && !ended) std::this_thread::yield();
      if (ended) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      ++done;
    });
    CHECK(false);
  } catch (const Enough&) {
    CHECK(looks == 2);
  }
  return done;
}

void no_more_parts_are_begun_when_a_look_throws() {
  CHECK(parts_until_second_look(1) < 2);
  CHECK(parts_until_second_look(3) < kMany / 2);
  std::atomic<std::int64_t> done = 0;
  for_parts(10, 3, [&](std::int64_t) { ++done; });  // no callback is set any more
  CHECK(done == 10);
}

void a_set_up_can_be_ended_at_many_places() {
  const Matrix matrix = poisson({.cells = {60, 60, 60}});
  for (const Coarse coarse : {Coarse::none, Coarse::aggregates}) {
    const auto set_up = [&] {
      Settings settings;
      settings.coarse = coarse;
      settings.threads = 1;  // else the count depends on how many parts each thread takes
      const Solver solver(matrix.view(), settings);
    };
    const int all = looks_of(1'000'000, set_up);
    CHECK(all > 20);
    for (int most = 1; most < all / 2; most += 1 + all / 100) {
      CHECK(looks_of(most, set_up) == most);
    }
  }
}

}  // namespace

int main() {
  no_more_parts_are_begun_when_a_look_throws();
  if (!kUnderTsan) a_set_up_can_be_ended_at_many_places();  // of one thread
}
