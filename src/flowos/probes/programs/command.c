/* What a command takes, run after run: time, processor time, memory, and counters of the processor.
 *
 *   command [--seconds 0.3] [--ignore-failure] -- COMMAND [ARG...]
 *
 * One run, then more until they took SECONDS together. Nothing stands between us and the command:
 * no shell. Its standard input and output are /dev/null; of its standard error the end is kept. A
 * command that takes less than 5 ms alternates with `true`, started in the same way: that is what
 * starting and ending a process takes.
 * Readings, with a value for each run: wall, user, system, in seconds; max_rss, in bytes, of the
 * largest of its processes; process_start, in seconds, of `true`; instructions and cycles outside
 * the kernel, where it counts them, else the note `counters` is the error's number.
 * A run that fails ends it with 77, {"exit": N}, {"signal": N} or {"errno": N}, and on standard
 * error what the command said last.
 *
 * The kernel counts the memory that we had before exec() as the command's: we have little. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "flowos_measure.h"

enum { MAX_RUNS = 1000, TAIL = 4096, COUNTERS = 2 };
enum { WALL, USER, SYSTEM, MAX_RSS, START, FIRST_COUNTER, METRICS = FIRST_COUNTER + COUNTERS };

static const double kShortSeconds = 0.005;
static const char *const kMetrics[METRICS][2] = {
    {"wall", "second"},  {"user", "second"},          {"system", "second"},
    {"max_rss", "byte"}, {"process_start", "second"}, {"instructions", "instruction"},
    {"cycles", "cycle"},
};
#ifndef FM_COUNTERS /* tests count what a virtual machine counts, too */
#define FM_COUNTERS PERF_TYPE_HARDWARE
#define FM_FIRST PERF_COUNT_HW_INSTRUCTIONS
#define FM_SECOND PERF_COUNT_HW_CPU_CYCLES
#endif
static const unsigned kCounters[COUNTERS] = {FM_FIRST, FM_SECOND};

struct count {
  unsigned long long value, enabled, running;
};

static struct {
  int null, err, err_end, children; /* err: what we read of what is written to err_end */
  int counters[COUNTERS], no_counters;
  char tail[TAIL];
  size_t kept;
  double values[METRICS][MAX_RUNS];
  int counts[METRICS];
} run = {.counters = {-1, -1}};

static void add(int metric, double value) { run.values[metric][run.counts[metric]++] = value; }

/* ---- counters ---- */

/* Anew for each run: the kernel may swap the counters of two processes that have the same ones, and
 * exec() then enables ours, once for all. */
static void open_counters(void) {
  for (int i = 0; i < COUNTERS && !run.no_counters; i++) {
    struct perf_event_attr attr = {.type = FM_COUNTERS, .size = sizeof attr};
    attr.config = kCounters[i];
    attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
    attr.disabled = attr.inherit = attr.enable_on_exec = 1;
    attr.exclude_kernel = attr.exclude_hv = 1;
    run.counters[i] = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (run.counters[i] < 0) run.no_counters = errno;
  }
}

/* Where others count too, the kernel lets each count for a part of the time. */
static void read_counters(void) {
  for (int i = 0; i < COUNTERS; i++) {
    struct count found = {0, 0, 0};
    if (run.counters[i] < 0) continue;
    const bool got = read(run.counters[i], &found, sizeof found) == (ssize_t)sizeof found;
    close(run.counters[i]);
    run.counters[i] = -1;
    if (got && found.running > 0)
      add(FIRST_COUNTER + i, (double)found.value * ((double)found.enabled / (double)found.running));
  }
}

/* ---- one run ---- */

static void keep(const char *data, size_t size) {
  if (size > TAIL) data += size - TAIL, size = TAIL;
  const size_t stays = run.kept + size > TAIL ? TAIL - size : run.kept;
  memmove(run.tail, run.tail + run.kept - stays, stays);
  memcpy(run.tail + stays, data, size);
  run.kept = stays + size;
}

/* A command that says much would else wait for us to read it. */
static void drain(void) {
  char data[1 << 14];
  ssize_t got = 0;
  while ((got = read(run.err, data, sizeof data)) > 0) keep(data, (size_t)got);
}

__attribute__((noreturn)) static void failed(const char *how, int number) {
  printf("{\"%s\": %d}\n", how, number);
  fflush(stdout);
  for (size_t put = 0; put < run.kept;) {
    const ssize_t got = write(STDERR_FILENO, run.tail + put, run.kept - put);
    if (got <= 0) break;
    put += (size_t)got;
  }
  exit(FM_CANNOT);
}

static pid_t start(char **words) {
  posix_spawn_file_actions_t streams;
  posix_spawnattr_t how;
  sigset_t none;
  pid_t child = 0;
  sigemptyset(&none);
  posix_spawnattr_init(&how);
  posix_spawnattr_setsigmask(&how, &none);
  posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK);
  posix_spawn_file_actions_init(&streams);
  posix_spawn_file_actions_adddup2(&streams, run.null, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&streams, run.null, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&streams, run.err_end, STDERR_FILENO);
  const int error = posix_spawnp(&child, words[0], &streams, &how, words, environ);
  posix_spawn_file_actions_destroy(&streams);
  posix_spawnattr_destroy(&how);
  errno = error;
  return error ? -1 : child;
}

/* Waits for its end, and reads what it says meanwhile. */
static int end_of(pid_t child, struct rusage *used) {
  struct pollfd on[2] = {{run.children, POLLIN, 0}, {run.err, POLLIN, 0}};
  struct signalfd_siginfo info;
  int status = 0;
  for (;;) {
    if (poll(on, 2, -1) < 0 && errno != EINTR) fm_fail("poll: %s", strerror(errno));
    if (on[1].revents) drain();
    if (!on[0].revents) continue;
    if (read(run.children, &info, sizeof info) < 0 && errno != EAGAIN)
      fm_fail("signalfd: %s", strerror(errno));
    const pid_t ended = wait4(child, &status, WNOHANG, used);
    if (ended < 0) fm_fail("wait4: %s", strerror(errno));
    if (ended == child) return status;
  }
}

static double seconds_of(struct timeval time) {
  return (double)time.tv_sec + 1e-6 * (double)time.tv_usec;
}

/* Seconds that it took. */
static double once(char **words, bool ignore_failure) {
  struct rusage used;
  run.kept = 0;
  open_counters();
  const double began = fm_seconds();
  const pid_t child = start(words);
  if (child < 0) failed("errno", errno);
  const int status = end_of(child, &used);
  const double wall = fm_seconds() - began;
  drain();
  if (status && !ignore_failure) {
    if (WIFSIGNALED(status)) failed("signal", WTERMSIG(status));
    failed("exit", WEXITSTATUS(status));
  }
  add(WALL, wall);
  add(USER, seconds_of(used.ru_utime));
  add(SYSTEM, seconds_of(used.ru_stime));
  add(MAX_RSS, 1024.0 * (double)used.ru_maxrss);
  read_counters();
  return wall;
}

/* What it takes to start and end a process. */
static void start_only(void) {
  char name[] = "true";
  char *words[] = {name, NULL};
  struct rusage used;
  const double began = fm_seconds();
  const pid_t child = start(words);
  if (child < 0) return; /* there is none here */
  if (end_of(child, &used) == 0) add(START, fm_seconds() - began);
}

/* ---- all of them ---- */

static void prepare(void) {
  int pipes[2];
  sigset_t children;
  sigemptyset(&children);
  sigaddset(&children, SIGCHLD);
  signal(SIGCHLD, SIG_DFL);
  sigprocmask(SIG_BLOCK, &children, NULL);
  run.children = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
  run.null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (run.children < 0 || run.null < 0 || pipe2(pipes, O_CLOEXEC))
    fm_fail("signalfd, /dev/null or a pipe: %s", strerror(errno));
  run.err = pipes[0];
  run.err_end = pipes[1];
  fcntl(run.err, F_SETFL, O_NONBLOCK);
}

static void answer(void) {
  char note[64] = "";
  if (run.no_counters) snprintf(note, sizeof note, "\"counters\": \"%d\"", run.no_counters);
  for (int i = 0; i < METRICS; i++)
    if (run.counts[i])
      fm_reading(!i, kMetrics[i][0], kMetrics[i][1], run.values[i], run.counts[i], "",
                 i ? "" : note);
  fm_end();
}

int main(int count, char **words) {
  double seconds = 0.3;
  bool ignore_failure = false;
  int i = 1;
  for (; i < count && strcmp(words[i], "--") != 0; i++) {
    if (strcmp(words[i], "--seconds") == 0 && i + 1 < count) seconds = atof(words[++i]);
    if (strcmp(words[i], "--ignore-failure") == 0) ignore_failure = true;
  }
  if (i + 1 >= count)
    fm_fail("usage: command [--seconds S] [--ignore-failure] -- COMMAND [ARG...]");
  prepare();
  const double ends = fm_seconds() + seconds;
  const bool is_short = once(words + i + 1, ignore_failure) < kShortSeconds;
  for (;;) {
    if (is_short) start_only();
    if (fm_seconds() >= ends || run.counts[WALL] == MAX_RUNS) break;
    once(words + i + 1, ignore_failure);
  }
  answer();
  return FM_OK;
}
