/* The true clock of each cpu given, and the ratio of dependent adds to dependent multiplies.
 *
 *   clock --cpus 0,1 [--repetitions 15]
 *
 * Readings, one per cpu and repetition: clock in Hz, add_imul_ratio in 1 (3 on every x86-64 in use
 * when nothing disturbed the measurement). Each is the median of chains of some 30 us: where others
 * run on the cpu, few of those are interrupted, as a thread keeps it for milliseconds. Time of the
 * thread alone would leave out other processes, but not what a hypervisor takes. */
#include "flowos_clock.h"

enum { ADDS = 100000, MULTIPLIES = 50000, CHAINS = 200, MAX_REPETITIONS = 1000 };

struct answer {
  int repetitions;
  double *clock, *ratio;
};

static double median_rate(double (*rate)(long), long count) {
  double rates[CHAINS];
  for (int i = 0; i < CHAINS; i++) rates[i] = rate(count);
  return fm_median(rates, CHAINS);
}

static void measure(int member, void *shared) {
  const struct answer *answer = shared;
  (void)member;
  fm_dependent_adds_per_second(4L * CHAINS * ADDS); /* wakes the core up */
  for (int i = 0; i < answer->repetitions; i++) {
    answer->clock[i] = median_rate(fm_dependent_adds_per_second, ADDS);
    answer->ratio[i] =
        answer->clock[i] / median_rate(fm_dependent_multiplies_per_second, MULTIPLIES);
  }
}

int main(int count, char **words) {
  static int cpus[FM_MAX_CPUS];
  static double clock[MAX_REPETITIONS], ratio[MAX_REPETITIONS];
  struct answer answer = {15, clock, ratio};
  int cpu_count = 0;
  for (int i = 1; i + 1 < count; i += 2) {
    if (!strcmp(words[i], "--cpus")) cpu_count = fm_parse_cpus(words[i + 1], cpus);
    if (!strcmp(words[i], "--repetitions")) answer.repetitions = atoi(words[i + 1]);
  }
  if (!cpu_count || answer.repetitions < 1 || answer.repetitions > MAX_REPETITIONS)
    fm_fail("usage: clock --cpus LIST [--repetitions 1..%d]", MAX_REPETITIONS);
  for (int i = 0; i < cpu_count; i++) {
    char levels[32];
    snprintf(levels, sizeof levels, "\"cpu\": \"%d\"", cpus[i]);
    fm_on_each_cpu(&cpus[i], 1, measure, &answer);
    fm_reading(i == 0, "clock", "Hz", clock, answer.repetitions, levels, "");
    fm_reading(0, "add_imul_ratio", "1", ratio, answer.repetitions, levels, "");
  }
  fm_end();
  return FM_OK;
}
