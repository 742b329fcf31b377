#define _GNU_SOURCE
#include "node_times.h"

#include <stdio.h>
#include <unistd.h>

static const double sector_bytes = 512.0;

static double stalled(const char* file) {
  unsigned long long microseconds = 0;
  FILE* pressure = fopen(file, "re");
  if (pressure == NULL) return -1.0;
  const bool known =
      fscanf(pressure, "some avg10=%*f avg60=%*f avg300=%*f total=%llu", &microseconds) == 1;
  fclose(pressure);
  return known ? (double)microseconds * 1e-6 : -1.0;
}

/* Not a partition, nor what lies on other disks (dm, md, loop): its bytes are counted there. */
static bool is_disk(unsigned major, unsigned minor) {
  char device[64];
  snprintf(device, sizeof device, "/sys/dev/block/%u:%u/device", major, minor);
  return access(device, F_OK) == 0;
}

static double disk_bytes(void) {
  char line[512];
  double sectors = -1.0;
  FILE* disks = fopen("/proc/diskstats", "re");
  if (disks == NULL) return -1.0;
  while (fgets(line, sizeof line, disks) != NULL) {
    unsigned major, minor;
    unsigned long long got, put;
    if (sscanf(line, "%u %u %*s %*u %*u %llu %*u %*u %*u %llu", &major, &minor, &got, &put) != 4)
      continue;
    if (is_disk(major, minor)) sectors = (sectors < 0.0 ? 0.0 : sectors) + (double)(got + put);
  }
  fclose(disks);
  return sectors < 0.0 ? -1.0 : sectors * sector_bytes;
}

struct node_times read_node_times(void) {
  struct node_times now = {.memory_stalled = stalled("/proc/pressure/memory"),
                           .io_stalled = stalled("/proc/pressure/io"),
                           .disk_bytes = disk_bytes()};
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

static double passed(double before, double now) {
  return before < 0.0 || now < before ? -1.0 : now - before;
}

struct node_times node_times_since(struct node_times before) {
  struct node_times now = read_node_times();
  now.known = now.known && before.known;
  now.busy -= before.busy;
  now.idle -= before.idle;
  now.steal -= before.steal;
  now.memory_stalled = passed(before.memory_stalled, now.memory_stalled);
  now.io_stalled = passed(before.io_stalled, now.io_stalled);
  now.disk_bytes = passed(before.disk_bytes, now.disk_bytes);
  return now;
}

void describe_node_times(struct node_times meanwhile, char* to, size_t size) {
  const struct {
    const char* name;
    double value;
  } lines[] = {{"cpus_busy_seconds", meanwhile.busy},
               {"cpus_idle_seconds", meanwhile.idle},
               {"cpus_steal_seconds", meanwhile.steal},
               {"memory_stalled_seconds", meanwhile.memory_stalled},
               {"io_stalled_seconds", meanwhile.io_stalled},
               {"disk_bytes", meanwhile.disk_bytes}};
  size_t used = 0;
  *to = '\0';
  for (size_t i = 0; meanwhile.known && i < sizeof lines / sizeof *lines; i++) {
    if (lines[i].value < 0.0) continue;
    int more = snprintf(to + used, size - used, "%s %.6f\n", lines[i].name, lines[i].value);
    if (more < 0 || (size_t)more >= size - used) return;
    used += (size_t)more;
  }
}
