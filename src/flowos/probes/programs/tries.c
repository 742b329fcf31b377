/* Tries what the kernel allows here. Containers forbid some system calls, and a program that
 * falls back in one environment only would be compared with another program.
 *
 *   tries [FOLDER]
 *
 * Prints {"tried": [{"name", "works", "says"}, ...]}: the names are those of collect.py, `says` is
 * the kernel's complaint. FOLDER: where to try direct I/O, which leaves no file behind. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "flowos_measure.h"

#ifndef SYS_io_uring_setup
#define SYS_io_uring_setup 425 /* the same on every architecture */
#endif
enum { BLOCK = 4096, RING_ENTRIES = 4, RING_PARAMETERS = 120, MPOL_DEFAULT_ = 0 };

/* Each returns 0, or the error. */
typedef int Try(const char *folder);

static int ended(long descriptor) {
  if (descriptor < 0) return errno;
  close((int)descriptor);
  return 0;
}

static int io_uring(const char *folder) {
  (void)folder;
  char parameters[RING_PARAMETERS] = {0};
  return ended(syscall(SYS_io_uring_setup, RING_ENTRIES, parameters));
}

static int cycle_counter(const char *folder) {
  (void)folder;
  struct perf_event_attr wanted = {.type = PERF_TYPE_HARDWARE,
                                   .size = sizeof wanted,
                                   .config = PERF_COUNT_HW_CPU_CYCLES,
                                   .exclude_kernel = 1,
                                   .exclude_hv = 1};
  return ended(syscall(SYS_perf_event_open, &wanted, 0, -1, -1, 0));
}

static int memory_files(const char *folder) {
  (void)folder;
  return ended(memfd_create("flowos", MFD_CLOEXEC));
}

static int pinning(const char *folder) {
  (void)folder;
  static cpu_set_t cpus;
  if (sched_getaffinity(0, sizeof cpus, &cpus)) return errno;
  return sched_setaffinity(0, sizeof cpus, &cpus) ? errno : 0;
}

static int memory_placement(const char *folder) {
  (void)folder;
  void *page = mmap(NULL, BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return errno;
  const long failed = syscall(SYS_mbind, page, (long)BLOCK, MPOL_DEFAULT_, NULL, 0L, 0);
  return failed ? errno : 0;
}

/* The system call that lets MPI ranks copy from each other in one step. */
static int copying_between_processes(const char *folder) {
  (void)folder;
  char from = 'x', to = 0;
  const struct iovec local = {&to, 1}, remote = {&from, 1};
  return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == 1 ? 0 : errno;
}

static int shared_memory(const char *folder) {
  (void)folder;
  return ended(open("/dev/shm", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600));
}

static int direct_io(const char *folder) {
  char path[BLOCK];
  void *block = NULL;
  int error = posix_memalign(&block, BLOCK, BLOCK);
  if (error) return error;
  errno = 0;
  memset(block, 0, BLOCK);
  snprintf(path, sizeof path, "%s/.flowos-try-%ld", folder, (long)getpid());
  const int file = open(path, O_RDWR | O_DIRECT | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) error = errno;
  if (!error && (write(file, block, BLOCK) != BLOCK || pread(file, block, BLOCK, 0) != BLOCK))
    error = errno ? errno : EIO;
  if (file >= 0) {
    unlink(path);
    close(file);
  }
  free(block);
  return error;
}

int main(int count, char **words) {
  static const struct {
    const char *name;
    Try *works;
  } tries[] = {{"io_uring", io_uring},
               {"cycle counter", cycle_counter},
               {"memory files", memory_files},
               {"pinning", pinning},
               {"memory placement", memory_placement},
               {"copying between processes", copying_between_processes},
               {"shared memory", shared_memory},
               {"direct I/O", direct_io}};
  const size_t all = sizeof tries / sizeof tries[0] - (count < 2);
  printf("{\"tried\": [");
  for (size_t i = 0; i < all; i++) {
    const int error = tries[i].works(count < 2 ? "" : words[1]);
    printf("%s\n{\"name\": \"%s\", \"works\": %s, \"says\": \"%s\"}", i ? "," : "", tries[i].name,
           error ? "false" : "true", error ? strerror(error) : "");
  }
  printf("\n]}\n");
  return FM_OK;
}
