/* Planted disturbers, and a short piece of work to be disturbed.
 *
 *   _disturb spin          keeps a cpu busy
 *   _disturb hog           copies 128 MiB to and fro: memory bandwidth
 *   _disturb work UNITS    sums 4 MiB UNITS times, seven times over; prints the seconds of each
 *
 * spin and hog end with the process that started them. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

enum { HOG_BYTES = 64 << 20, WORK_WORDS = 1 << 19, REPETITIONS = 7 };

static double seconds_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC_RAW, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *memory(size_t bytes) {
  void *at = malloc(bytes);
  if (!at) {
    fprintf(stderr, "no memory for %zu bytes\n", bytes);
    exit(1);
  }
  return memset(at, 1, bytes);
}

static void spin(void) {
  for (volatile uint64_t count = 0;; count++) {
  }
}

static void hog(void) {
  char *here = memory(HOG_BYTES), *there = memory(HOG_BYTES);
  for (;;) {
    memcpy(there, here, HOG_BYTES);
    memcpy(here, there, HOG_BYTES);
    __asm__ volatile("" ::"r"(here), "r"(there) : "memory");
  }
}

static int work(long units) {
  const uint64_t *words = memory(WORK_WORDS * sizeof *words);
  const uint64_t once = (uint64_t)WORK_WORDS * 0x0101010101010101u;
  for (int repetition = 0; repetition < REPETITIONS; repetition++) {
    uint64_t sum = 0;
    const double start = seconds_now();
    for (long unit = 0; unit < units; unit++) {
      for (int i = 0; i < WORK_WORDS; i++) sum += words[i];
      __asm__ volatile("" : "+r"(sum)::"memory");
    }
    printf("%.9f\n", seconds_now() - start);
    if (sum != once * (uint64_t)units) return fputs("the sum is wrong\n", stderr), 1;
  }
  return 0;
}

int main(int count, char **arguments) {
  const char *what = count > 1 ? arguments[1] : "";
  if (!strcmp(what, "work") && count == 3) return work(atol(arguments[2]));
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (!strcmp(what, "spin")) spin();
  if (!strcmp(what, "hog")) hog();
  fputs("usage: _disturb spin | hog | work UNITS\n", stderr);
  return 2;
}
