/* What this machine did since it started: all its CPUs together (proc(5), /proc/stat), some process
 * of it, waiting (Linux Documentation/accounting/psi.rst), its disks (admin-guide/iostats.rst). */
#ifndef FLOWOS_INIT_NODE_TIMES_H
#define FLOWOS_INIT_NODE_TIMES_H

#include <stdbool.h>
#include <stddef.h>

/* In seconds, and bytes. Below 0: not counted. */
struct node_times {
  bool known;
  double busy; /* user, nice, system, irq, softirq; of guests too */
  double idle; /* also while a disk was waited for */
  double steal;
  double memory_stalled;
  double io_stalled;
  double disk_bytes; /* read and written by all disks together */
};

struct node_times read_node_times(void);
struct node_times node_times_since(struct node_times before);

/* Lines "NAME VALUE" of what is counted; none if the CPUs are not. */
void describe_node_times(struct node_times meanwhile, char* to, size_t size);

#endif
