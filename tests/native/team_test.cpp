// A team of threads: each share of the work is done once by any thread, none waits for a thread
// that does not come, and one that has waited too often continues alone.

#include "threads/team.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <vector>

#include "check.h"
#include "threads/patience.h"

using namespace flowos::solve;
using namespace std::chrono_literals;

namespace {

using Time = Patience::Time;

constexpr std::size_t at(int share) { return static_cast<std::size_t>(share); }

void each_share_of_each_turn_is_done_once() {
  for (const int threads : {1, 2, 3, 8}) {
    Team team(threads);
    std::vector<std::atomic<int>> done(at(team.size()));
    for (int turn = 1; turn <= 3000; ++turn) {
      team.run([&](int share) { ++done[at(share)]; });
      for (const auto& times : done) CHECK(times == turn);
    }
  }
}

// What ThreadSanitizer would tell, too.
void what_a_turn_wrote_is_read_by_the_next() {
  Team team(3);
  std::array<int, 3> values{};
  for (int turn = 0; turn < 2000; ++turn) {
    team.run([&](int share) { values[at(share)] = turn + share; });
    int sum = 0;
    for (const int value : values) sum += value;
    CHECK(sum == 3 * turn + 3);
  }
}

// The thread of share 1, once it has done one.
pthread_t helper_of(Team& team) {
  pthread_t helper = pthread_self();
  while (pthread_equal(helper, pthread_self()) != 0) {
    std::atomic<bool> begun = false;
    team.run([&](int share) {
      if (share == 1) {
        helper = pthread_self();
        begun = true;
      }
      for (int i = 0; share == 0 && i < 1000 && !begun; ++i) usleep(100);
    });
  }
  return helper;
}

std::atomic<bool> held = false, let_go = false;

void hold(int) {
  held = true;
  while (!let_go) usleep(100);
}

void a_thread_that_does_not_come_is_not_waited_for() {
  Team team(2);
  const pthread_t helper = helper_of(team);
  signal(SIGUSR1, hold);
  CHECK(pthread_kill(helper, SIGUSR1) == 0);
  while (!held) usleep(100);
  int done = 0;
  for (int turn = 0; turn < 100; ++turn) team.run([&](int) { ++done; });
  CHECK(done == 200);
  let_go = true;
}

// It waits for the other, whose share takes long: soon it does both.
void who_waited_for_another_too_often_goes_on_alone() {
  Team team(2);
  const pthread_t me = pthread_self();
  bool alone = false;
  for (int turn = 0; turn < 1000 && !alone; ++turn) {
    std::atomic<bool> begun = false;
    team.run([&](int share) {
      if (share == 0) {
        for (int i = 0; i < 200 && !begun; ++i) usleep(100);
        return;
      }
      begun = true;
      alone = pthread_equal(me, pthread_self()) != 0;
      if (!alone) usleep(5000);
    });
  }
  CHECK(alone);
}

void waiting_for_less_than_a_third_of_the_time_is_put_up_with() {
  Patience patience;
  Time now = Time() + 1h;
  for (int turn = 0; turn < 1000; ++turn) {
    CHECK(patience.calls_others(now));
    patience.waited(now + 2ms, now + 3ms);
    now += 3ms;
  }
}

void one_long_wait_ends_it_for_many_times_as_long_and_the_next_for_longer() {
  Patience patience;
  Time now = Time() + 1h;
  std::array<Time::duration, 3> pauses{};
  for (Time::duration& pause : pauses) {
    CHECK(patience.calls_others(now));
    patience.waited(now, now + 10ms);
    now += 10ms;
    const Time from = now;
    while (!patience.calls_others(now)) now += 1ms;
    pause = now - from;
  }
  CHECK(pauses[0] >= 50ms);
  CHECK(pauses[0] <= 200ms);
  CHECK(pauses[1] > pauses[0] * 3 / 2);
  CHECK(pauses[2] > pauses[1] * 3 / 2);
}

void a_pause_is_short_again_after_a_long_time_in_company() {
  Patience patience;
  Time now = Time() + 1h;
  std::array<Time::duration, 2> pauses{};
  for (Time::duration& pause : pauses) {
    CHECK(patience.calls_others(now));
    patience.waited(now, now + 10ms);
    now += 10ms;
    const Time from = now;
    while (!patience.calls_others(now)) now += 1ms;
    pause = now - from;
    now += 10s;
  }
  CHECK(pauses[0] == pauses[1]);
}

}  // namespace

int main() {
  each_share_of_each_turn_is_done_once();
  what_a_turn_wrote_is_read_by_the_next();
  // ThreadSanitizer may keep its signal back for ever.
  if (!kUnderTsan) a_thread_that_does_not_come_is_not_waited_for();
  who_waited_for_another_too_often_goes_on_alone();
  waiting_for_less_than_a_third_of_the_time_is_put_up_with();
  one_long_wait_ends_it_for_many_times_as_long_and_the_next_for_longer();
  a_pause_is_short_again_after_a_long_time_in_company();
}
