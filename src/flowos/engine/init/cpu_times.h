/* What all CPUs of this machine did since it started, in seconds (proc(5), /proc/stat). */
#ifndef FLOWOS_INIT_CPU_TIMES_H
#define FLOWOS_INIT_CPU_TIMES_H

#include <stdbool.h>

struct cpu_times {
  bool known;
  double busy; /* user, nice, system, irq, softirq; of guests too */
  double idle; /* also while a disk was waited for */
  double steal;
};

struct cpu_times read_cpu_times(void);
struct cpu_times cpu_times_since(struct cpu_times before);

#endif
