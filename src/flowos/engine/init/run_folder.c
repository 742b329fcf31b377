#define _GNU_SOURCE
#include "run_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/utsname.h>
#include <unistd.h>

unsigned long own_rank(void) {
  static const char* const names[] = {"PMIX_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK",
                                      "SLURM_PROCID"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const char* value = getenv(names[i]);
    if (value == NULL || *value < '0' || *value > '9') continue;
    char* end = NULL;
    unsigned long rank = strtoul(value, &end, 10);
    if (*end == '\0') return rank;
  }
  return 0;
}

ssize_t read_some(int fd, void* to, size_t max_bytes) {
  ssize_t got = 0;
  do got = read(fd, to, max_bytes);
  while (got < 0 && errno == EINTR);
  return got;
}

/* All that is left of `fd`, with a NUL behind it, or NULL and errno. */
static char* read_all(int fd, size_t* size) {
  size_t room = 4096;
  char* text = malloc(room);
  *size = 0;
  while (text != NULL) {
    ssize_t got = read_some(fd, text + *size, room - *size - 1);
    if (got < 0) break;
    *size += (size_t)got;
    text[*size] = '\0';
    if (got == 0) return text;
    if (room - *size > 1) continue;
    char* larger = realloc(text, room *= 2);
    if (larger == NULL) break;
    text = larger;
  }
  int error = errno;
  free(text);
  errno = error;
  return NULL;
}

char* read_file(int folder, const char* name, size_t* size) {
  size_t ignored = 0;
  int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return NULL;
  char* text = read_all(fd, size != NULL ? size : &ignored);
  int error = errno;
  close(fd);
  errno = error;
  return text;
}

int open_launch(struct run_folder* folder) {
  folder->launch = read_file(folder->fd, "launch", &folder->launch_size);
  return folder->launch == NULL ? errno : 0;
}

char* part_of(const struct run_folder* folder, const char* name, size_t* size) {
  const size_t length = strlen(name);
  char* const end = folder->launch + folder->launch_size;
  for (char* at = folder->launch; at < end;) {
    char* content = NULL;
    char* found = strchr(at, ' ');
    if (found == NULL) return NULL;
    size_t bytes = strtoul(found, &content, 10);
    if (*content != '\n') return NULL; /* cut off */
    content++;
    if (bytes >= (size_t)(end - content)) return NULL;
    if ((size_t)(found - at) == length && strncmp(at, name, length) == 0) {
      if (size != NULL) *size = bytes;
      return content;
    }
    at = content + bytes + 1;
  }
  return NULL;
}

static bool write_all(int fd, const char* text) {
  size_t left = strlen(text);
  while (left > 0) {
    ssize_t put = write(fd, text, left);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return false;
    text += put;
    left -= (size_t)put;
  }
  return true;
}

static bool publish(const struct run_folder* folder, const char* what, const char* text) {
  char name[48];
  char hidden[sizeof name + 1];
  snprintf(name, sizeof name, "%s.%lu", what, folder->rank);
  snprintf(hidden, sizeof hidden, ".%s", name);
  int fd = openat(folder->fd, hidden, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
                  S_IRUSR | S_IWUSR);
  bool good = fd >= 0 && write_all(fd, text);
  if (fd >= 0 && close(fd) != 0) good = false;
  good = good && renameat(folder->fd, hidden, folder->fd, name) == 0;
  if (!good) fprintf(stderr, "flowos-init: cannot write %s: %s\n", name, strerror(errno));
  return good;
}

void publish_started(const struct run_folder* folder, pid_t init, pid_t command) {
  char text[320];
  struct stat pids = {0};
  struct stat mounts = {0};
  struct utsname node = {0};
  stat("/proc/self/ns/pid", &pids);
  stat("/proc/self/ns/mnt", &mounts);
  uname(&node);
  const char* job = getenv("SLURM_JOB_ID");
  const char* step = getenv("SLURM_STEP_ID");
  bool in_step = job != NULL && step != NULL;
  char* boot = read_file(AT_FDCWD, "/proc/sys/kernel/random/boot_id", NULL);
  snprintf(text, sizeof text, "%ld %ld %ld %llu %llu %.36s %s %.20s.%.20s\n", (long)init,
           (long)command, (long)getsid(0), (unsigned long long)pids.st_ino,
           (unsigned long long)mounts.st_ino, boot == NULL ? "-" : boot, node.nodename,
           in_step ? job : "-", in_step ? step : "-");
  free(boot);
  publish(folder, "started", text);
}

void take_back_started(const struct run_folder* folder) {
  char name[48];
  snprintf(name, sizeof name, "started.%lu", folder->rank);
  unlinkat(folder->fd, name, 0);
}

static double seconds_of(struct timeval t) { return (double)t.tv_sec + (double)t.tv_usec * 1e-6; }

bool publish_status(const struct run_folder* folder, const char* end, bool stopped,
                    double began_seconds, double ended_seconds, struct node_times meanwhile,
                    struct progress said) {
  struct rusage used;
  getrusage(RUSAGE_CHILDREN, &used);
  char node[320];
  char text[832];
  char moved[48] = "";
  describe_node_times(meanwhile, node, sizeof node);
  if (meanwhile.known && access("/proc/self/io", F_OK) == 0) /* else it is not counted */
    snprintf(moved, sizeof moved, "own_disk_bytes %lld\n",
             ((long long)used.ru_inblock + (long long)used.ru_oublock) * 512);
  snprintf(text, sizeof text,
           "%s\nstopped %d\nended_seconds %.6f\nwall_seconds %.6f\nuser_seconds %.6f\n"
           "system_seconds %.6f\nmax_rss_bytes %lld\nbegun %llu\nruns %llu\n%s%s",
           end, stopped ? 1 : 0, ended_seconds, ended_seconds - began_seconds,
           seconds_of(used.ru_utime), seconds_of(used.ru_stime), (long long)used.ru_maxrss * 1024,
           said.begun, said.runs, node, moved);
  return publish(folder, "status", text);
}
