/* Time in which a cache line goes from one core to another.
 *
 *   core_latency --pairs 0-1,0-64 [--repetitions 5] [--seconds 0.002]
 *
 * Two threads write a line by turns, each when it sees what the other wrote: half of a round trip.
 * Readings per pair: latency, in seconds. */
#define _GNU_SOURCE
#include <stdatomic.h>

#include "flowos_clock.h"

enum { MAX_REPETITIONS = 100, BATCH = 1000, LINE = 128 };

/* The line and its neighbour, which some prefetchers bring with it. */
struct ball {
  _Alignas(LINE) atomic_long turn;
  char rest[LINE - sizeof(atomic_long)];
};

struct run {
  int repetitions;
  double seconds; /* for which each repetition goes on at least */
  double latency[MAX_REPETITIONS];
  struct ball ball, stop;
};

/* Turns come from 0 on; even ones are the first thread's. */
static void pass(struct ball *ball, long turn) {
  while (atomic_load_explicit(&ball->turn, memory_order_acquire) != turn) {
  }
  atomic_store_explicit(&ball->turn, turn + 1, memory_order_release);
}

static void answer(struct run *run) {
  for (long turn = 1;; turn += 2) {
    while (atomic_load_explicit(&run->ball.turn, memory_order_acquire) != turn)
      if (atomic_load_explicit(&run->stop.turn, memory_order_relaxed)) return;
    atomic_store_explicit(&run->ball.turn, turn + 1, memory_order_release);
  }
}

static void measure(int member, void *shared) {
  struct run *run = shared;
  fm_dependent_adds_per_second(20000000); /* wakes the core up */
  if (member) {
    answer(run);
    return;
  }
  long turn = 0;
  for (int r = -1; r < run->repetitions; r++) { /* the first is warm-up */
    const long first = turn;
    const double begin = fm_seconds();
    double seconds;
    do {
      for (int i = 0; i < BATCH; i++, turn += 2) pass(&run->ball, turn);
      seconds = fm_seconds() - begin;
    } while (seconds < run->seconds);
    if (r >= 0) run->latency[r] = seconds / (double)(turn - first);
  }
  while (atomic_load(&run->ball.turn) != turn) { /* the last answer */
  }
  atomic_store(&run->stop.turn, 1);
}

static const char *read_pair(const char *at, int *cpus) {
  char *end;
  cpus[0] = (int)strtol(at, &end, 10);
  if (end == at || *end != '-') return NULL;
  at = end + 1;
  cpus[1] = (int)strtol(at, &end, 10);
  return end == at || (*end && *end != ',') ? NULL : end;
}

int main(int count, char **words) {
  static struct run run = {.repetitions = 5, .seconds = 0.002};
  const char *pairs = NULL;
  for (int i = 1; i + 1 < count; i += 2) {
    if (!strcmp(words[i], "--pairs")) pairs = words[i + 1];
    if (!strcmp(words[i], "--repetitions")) run.repetitions = atoi(words[i + 1]);
    if (!strcmp(words[i], "--seconds")) run.seconds = atof(words[i + 1]);
  }
  if (!pairs || run.repetitions < 1 || run.repetitions > MAX_REPETITIONS || !(run.seconds > 0))
    fm_fail("usage: core_latency --pairs A-B,... [--repetitions 1..%d] [--seconds S]",
            MAX_REPETITIONS);
  for (int printed = 0; pairs; printed = 1) {
    int cpus[2];
    char levels[64];
    const char *const end = read_pair(pairs, cpus);
    if (!end || cpus[0] == cpus[1]) fm_fail("--pairs %s: write them as 0-1,0-64", pairs);
    atomic_store(&run.ball.turn, 0);
    atomic_store(&run.stop.turn, 0);
    fm_on_each_cpu(cpus, 2, measure, &run);
    snprintf(levels, sizeof levels, "\"from\": \"%d\", \"to\": \"%d\"", cpus[0], cpus[1]);
    fm_reading(!printed, "latency", "second", run.latency, run.repetitions, levels, "");
    pairs = *end ? end + 1 : NULL;
  }
  fm_end();
  return FM_OK;
}
