#define _GNU_SOURCE
#include "cpu_times.h"

#include <stdio.h>
#include <unistd.h>

struct cpu_times read_cpu_times(void) {
  struct cpu_times now = {false, 0.0, 0.0, 0.0};
  unsigned long long user, nice, system, idle, waiting, irq, softirq, steal;
  FILE* stat = fopen("/proc/stat", "re");
  if (stat == NULL) return now;
  const double tick = 1.0 / (double)sysconf(_SC_CLK_TCK);
  now.known = fscanf(stat, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system,
                     &idle, &waiting, &irq, &softirq, &steal) == 8;
  fclose(stat);
  if (!now.known) return now;
  now.busy = (double)(user + nice + system + irq + softirq) * tick;
  now.idle = (double)(idle + waiting) * tick;
  now.steal = (double)steal * tick;
  return now;
}

struct cpu_times cpu_times_since(struct cpu_times before) {
  struct cpu_times now = read_cpu_times();
  now.known = now.known && before.known;
  now.busy -= before.busy;
  now.idle -= before.idle;
  now.steal -= before.steal;
  return now;
}
