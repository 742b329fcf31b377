/* The true clock by dependent instructions, and threads that stay where they are put.
 *
 * An integer add has a latency of one cycle on every x86-64 and aarch64 core in use, so a chain of
 * adds runs one per cycle, whatever /proc/cpuinfo says. Register + register only: recent cores
 * take adds of constants out of the chain (Golden Cove). A chain of 64-bit multiplies takes a fixed
 * number of cycles each (3 on x86-64), so the ratio of both rates shows a disturbed measurement. */
#ifndef FLOWOS_CLOCK_H
#define FLOWOS_CLOCK_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>

#include "flowos_measure.h"

enum { FM_MAX_CPUS = 8192 };

#if defined(__x86_64__)
#define FM_ADD "add %1, %0\n\t"
#define FM_MULTIPLY "imul %1, %0\n\t"
#elif defined(__aarch64__)
#define FM_ADD "add %0, %0, %1\n\t"
#define FM_MULTIPLY "mul %0, %0, %1\n\t"
#else
#error "flowos_clock.h knows x86-64 and aarch64"
#endif

/* Operations per second in a dependent chain of `count` (rounded up to 100) adds: the clock. */
static inline double fm_dependent_adds_per_second(long count) {
  const uint64_t step = 0x9e3779b97f4a7c15u;
  const long rounds = (count + 99) / 100;
  uint64_t sum = 1;
  const double start = fm_seconds();
  for (long i = 0; i < rounds; i++)
    __asm__ volatile(".rept 100\n\t" FM_ADD ".endr" : "+r"(sum) : "r"(step));
  const double seconds = fm_seconds() - start;
  if (sum != 1 + (uint64_t)rounds * 100 * step) fm_fail("dependent adds gave a wrong sum");
  return (double)rounds * 100 / seconds;
}

/* base to the power of exponent, modulo 2^64. */
static inline uint64_t fm_power(uint64_t base, uint64_t exponent) {
  uint64_t result = 1;
  for (; exponent; exponent >>= 1, base *= base)
    if (exponent & 1) result *= base;
  return result;
}

/* The same with multiplies. */
static inline double fm_dependent_multiplies_per_second(long count) {
  const uint64_t factor = 0x9e3779b97f4a7c15u;
  const long rounds = (count + 99) / 100;
  uint64_t product = 1;
  const double start = fm_seconds();
  for (long i = 0; i < rounds; i++)
    __asm__ volatile(".rept 100\n\t" FM_MULTIPLY ".endr" : "+r"(product) : "r"(factor));
  const double seconds = fm_seconds() - start;
  if (product != fm_power(factor, (uint64_t)rounds * 100))
    fm_fail("dependent multiplies gave a wrong product");
  return (double)rounds * 100 / seconds;
}

static inline int fm_ascending(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Sorts the values. */
static inline double fm_median(double *values, int count) {
  qsort(values, (size_t)count, sizeof *values, fm_ascending);
  return values[count / 2];
}

/* Keeps a thread (0: the calling one), and those that it starts, on these cpus (Linux' numbers). */
static inline void fm_keep_on(int thread, const int *cpus, int count) {
  cpu_set_t *set = CPU_ALLOC(FM_MAX_CPUS);
  const size_t size = CPU_ALLOC_SIZE(FM_MAX_CPUS);
  if (!set) fm_fail("no memory for a set of cpus");
  CPU_ZERO_S(size, set);
  for (int i = 0; i < count; i++) CPU_SET_S((size_t)cpus[i], size, set);
  const int wrong = sched_setaffinity(thread, size, set);
  CPU_FREE(set);
  if (wrong) fm_fail("cannot run on cpu %d: %s", cpus[0], strerror(errno));
}

static inline void fm_pin_to(int cpu) { fm_keep_on(0, &cpu, 1); }

/* Reads a list such as "0,2,4-7" into `cpus` (room for FM_MAX_CPUS); returns the count. */
static inline int fm_parse_cpus(const char *list, int *cpus) {
  int count = 0;
  for (const char *at = list;; at++) {
    char *end;
    const long first = strtol(at, &end, 10);
    long last = first;
    if (end != at && *end == '-') last = strtol(at = end + 1, &end, 10);
    if (end == at || first < 0 || last < first || last >= FM_MAX_CPUS)
      fm_fail("--cpus %s: write it as 0,2,4-7 with numbers below %d", list, FM_MAX_CPUS);
    if (last - first >= FM_MAX_CPUS - count)
      fm_fail("--cpus %s: more than %d cpus", list, FM_MAX_CPUS);
    for (long cpu = first; cpu <= last; cpu++) cpus[count++] = (int)cpu;
    if (*end == '\0') return count;
    if (*end != ',') fm_fail("--cpus %s: write it as 0,2,4-7", list);
    at = end;
  }
}

typedef void (*fm_work)(int member, void *shared);

struct fm_member {
  pthread_t thread;
  int index, cpu;
  fm_work work;
  void *shared;
};

static inline void *fm_member_run(void *at) {
  const struct fm_member *member = at;
  fm_pin_to(member->cpu);
  member->work(member->index, member->shared);
  return NULL;
}

/* Runs work(i, shared) in one new thread on each of the cpus, and waits for all of them. */
static inline void fm_on_each_cpu(const int *cpus, int count, fm_work work, void *shared) {
  struct fm_member *team = calloc((size_t)count, sizeof *team);
  if (!team) fm_fail("no memory for %d threads", count);
  for (int i = 0; i < count; i++) {
    team[i].index = i, team[i].cpu = cpus[i], team[i].work = work, team[i].shared = shared;
    const int wrong = pthread_create(&team[i].thread, NULL, fm_member_run, &team[i]);
    if (wrong) fm_fail("cannot start thread %d of %d: %s", i + 1, count, strerror(wrong));
  }
  for (int i = 0; i < count; i++) pthread_join(team[i].thread, NULL);
  free(team);
}

#endif
