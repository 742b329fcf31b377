/* What every measuring program shares: time, exit codes, JSON in base units.
 * A program prints one JSON object on stdout, checks its own answer, and exits
 * 0 (measured), 1 (its own check failed, reason on stderr) or 77 (cannot measure here). */
#ifndef FLOWOS_MEASURE_H
#define FLOWOS_MEASURE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { FM_OK = 0, FM_FAILED = 1, FM_CANNOT = 77 };

static inline double fm_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC_RAW, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Ends the program: the answer is wrong. */
__attribute__((noreturn, format(printf, 1, 2))) static inline void fm_fail(const char *format,
                                                                           ...) {
  va_list words;
  va_start(words, format);
  vfprintf(stderr, format, words);
  va_end(words);
  fputc('\n', stderr);
  exit(FM_FAILED);
}

/* Nothing to measure here, and what would mend it: before the program exits with FM_CANNOT. */
static inline void fm_say_cannot(const char *reason, const char *remedy) {
  printf("{\"cannot\": \"%s\", \"remedy\": \"%s\"}\n", reason, remedy);
  fflush(stdout);
}

__attribute__((noreturn)) static inline void fm_cannot(const char *reason, const char *remedy) {
  fm_say_cannot(reason, remedy);
  exit(FM_CANNOT);
}

/* One reading; `levels` and `notes` are the inside of JSON objects, such as "\"n\": \"512\"", or
 * "". */
static inline void fm_reading(int first, const char *metric, const char *unit, const double *values,
                              int count, const char *levels, const char *notes) {
  printf(
      "%s{\"metric\": \"%s\", \"unit\": \"%s\", \"levels\": {%s}, \"notes\": {%s}, \"values\": [",
      first ? "{\"readings\": [\n" : ",\n", metric, unit, levels, notes);
  for (int i = 0; i < count; i++) printf("%s%.9g", i ? ", " : "", values[i]);
  printf("]}");
}

static inline void fm_end(void) { printf("\n]}\n"); }

#endif
