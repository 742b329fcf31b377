#define _GNU_SOURCE
#include "boot.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "order.h"
#include "pump.h"
#include "run_folder.h"

enum {
  OWN_FAILURE = 125,
  SIGNALLED = 128,
  TAIL_BYTES = 2048,
  PIPE_BYTES = 4096,
  END_MILLISECONDS = 10,
  LOOK_MILLISECONDS = 200
};

static const double default_seconds = 30.0;
static const double late_seconds = 5.0; /* after the grace of flowos-init in the guest */
static const int handed_on[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

struct host {
  struct run_folder folder;
  struct order order;
  int theirs[LAST_PORT + 1]; /* QEMU's ends of its ports */
  int control, log, signals, lifeline;
  pid_t machine;
  struct pump input, output, errors;
  struct message coming;
  size_t got;
  double heard, end_at; /* monotonic; end_at 0: not asked for */
  double starved;       /* as of `heard` */
  bool started, ended, died, sent_no_input;
  int status; /* of QEMU, once it has died */
  bool sent_closed[LAST_PORT + 1];
  struct message end;
};

static double now_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- the machine ---- */

static bool write_whole(int fd, const void* data, size_t size) {
  const char* at = data;
  while (size > 0) {
    ssize_t put = write(fd, at, size);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return false;
    at += put;
    size -= (size_t)put;
  }
  return true;
}

/* It may be longer than the socket holds, so a process of its own writes it. */
static bool send_request(const struct host* host) {
  pid_t writer = fork();
  if (writer != 0) return writer > 0;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  struct request request = make_request(&host->order);
  unsigned size = (unsigned)request.size;
  bool good = write_whole(host->control, &size, sizeof size) &&
              write_whole(host->control, request.data, request.size);
  _exit(good ? EXIT_SUCCESS : EXIT_FAILURE);
}

static _Noreturn void become_machine(char** words, int log, pid_t parent) {
  sigset_t none;
  int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  setsid(); /* a terminal's Ctrl-C is for the command */
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(EXIT_FAILURE);
  dup2(nothing, STDIN_FILENO);
  dup2(log, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  execvp(words[0], words);
  dprintf(STDERR_FILENO, "%s: %s\n", words[0], strerror(errno));
  _exit(EXIT_FAILURE);
}

/* Our end. */
static int open_port(struct host* host, int port) {
  int ends[2] = {-1, -1};
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return -1;
  fcntl(ends[0], F_SETFD, FD_CLOEXEC);
  if (port != CONTROL) fcntl(ends[0], F_SETFL, O_NONBLOCK);
  host->theirs[port] = ends[1];
  return ends[0];
}

static bool start_machine(struct host* host) {
  pid_t parent = getpid();
  host->control = open_port(host, CONTROL);
  host->input.to = open_port(host, INPUT);
  host->output.from = open_port(host, OUTPUT);
  host->errors.from = open_port(host, ERRORS);
  if (host->control < 0 || host->input.to < 0 || host->output.from < 0 || host->errors.from < 0)
    return false;
  host->machine = fork();
  if (host->machine == 0)
    become_machine(words_for_qemu(&host->order, host->theirs), host->log, parent);
  for (int port = CONTROL; port <= LAST_PORT; port++) close(host->theirs[port]);
  return host->machine > 0;
}

static void end_machine(struct host* host) {
  if (host->died) return;
  host->died = true;
  kill(host->machine, SIGKILL);
  waitpid(host->machine, NULL, 0);
}

/* The last lines that QEMU and the guest's kernel printed. */
static void print_log(const struct host* host) {
  char tail[TAIL_BYTES + 1];
  struct stat seen = {0};
  fstat(host->log, &seen);
  off_t from = seen.st_size > TAIL_BYTES ? seen.st_size - TAIL_BYTES : 0;
  ssize_t got = pread(host->log, tail, TAIL_BYTES, from);
  tail[got > 0 ? got : 0] = '\0';
  fputs(tail, stderr);
}

static int report_failure(struct host* host, const char* stage, int number) {
  char end[64];
  snprintf(end, sizeof end, "error %s %d", stage, number);
  print_log(host);
  if (faccessat(host->folder.fd, "status.0", F_OK, 0) != 0)
    publish_status(&host->folder, end, false, 0.0, now_seconds(), (struct node_times){0},
                   (struct progress){0});
  return OWN_FAILURE;
}

/* ---- while it runs ---- */

static void hand_on_signals(struct host* host) {
  struct signalfd_siginfo info;
  while (read(host->signals, &info, sizeof info) == (ssize_t)sizeof info)
    /* what a terminal sends all of its job, our supervisor hands on */
    if (info.ssi_code != SI_KERNEL)
      send_message(host->control, (struct message){SIGNAL, (int)info.ssi_signo, {0}});
}

static void supervisor_gone(struct host* host) {
  char* grace = read_file(host->folder.fd, "grace", NULL);
  double seconds = grace != NULL ? strtod(grace, NULL) : 2.0;
  free(grace);
  close(host->lifeline);
  host->lifeline = -1;
  host->end_at = now_seconds() + (host->started ? seconds + late_seconds : 0.0);
  if (host->started) send_message(host->control, (struct message){GONE, 0, {0}});
}

static void hear(struct host* host, short ready) {
  if ((ready & POLLIN) == 0) { /* QEMU has ended */
    host->control = -1;
    return;
  }
  bool whole = next_message(host->control, &host->coming, &host->got);
  struct message message = host->coming;
  if (!whole) return;
  if (message.what == STARTED) host->started = true;
  if (message.what == ENDED) {
    host->ended = true;
    host->end = message;
  }
}

/* What the guest cannot see of our streams. It reads no message before it has started the command.
 */
static void send_stream_ends(struct host* host) {
  if (!host->started || host->control < 0) return;
  if (host->input.ended && is_empty(&host->input) && !host->sent_no_input) {
    host->sent_no_input = true;
    send_message(host->control, (struct message){NO_INPUT, 0, {host->input.given}});
  }
  const struct pump* outputs[] = {&host->output, &host->errors};
  for (int i = 0; i < 2; i++) {
    if (!outputs[i]->broken || host->sent_closed[OUTPUT + i]) continue;
    host->sent_closed[OUTPUT + i] = true;
    send_message(host->control, (struct message){CLOSED, OUTPUT + i, {0}});
  }
}

static bool all_printed(const struct host* host) {
  return host->ended && host->output.given >= host->end.bytes[0] &&
         host->errors.given >= host->end.bytes[1];
}

/* For how long the machine's busiest thread has waited for a processor since it began: on a machine
 * that is short of them a guest is late, and not dead. */
static double starved_seconds(pid_t machine) {
  char path[64];
  glob_t found;
  double max_seconds = 0.0;
  snprintf(path, sizeof path, "/proc/%ld/task/*/schedstat", (long)machine);
  if (glob(path, 0, NULL, &found) == 0)
    for (size_t i = 0; i < found.gl_pathc; i++) {
      unsigned long long waited = 0;
      char* text = read_file(AT_FDCWD, found.gl_pathv[i], NULL);
      if (text != NULL && sscanf(text, "%*u %llu", &waited) == 1 &&
          (double)waited > max_seconds * 1e9)
        max_seconds = (double)waited * 1e-9;
      free(text);
    }
  globfree(&found);
  return max_seconds;
}

static void heard(struct host* host) {
  double now = now_seconds();
  if (now < host->heard + 1.0) return; /* looking costs more than a short read */
  host->heard = now;
  host->starved = starved_seconds(host->machine);
}

/* Monotonic seconds at which it has said nothing for too long. */
static double silent_at(const struct host* host) {
  return host->heard + host->order.seconds + starved_seconds(host->machine) - host->starved;
}

static int milliseconds(const struct host* host) {
  double until = host->heard + host->order.seconds; /* then `silent_at` is asked */
  if (host->end_at > 0.0 && host->end_at < until) until = host->end_at;
  double left = (until - now_seconds()) * 1e3;
  if (host->control < 0) return END_MILLISECONDS;
  if (host->ended) return END_MILLISECONDS * 100;
  return left < LOOK_MILLISECONDS ? LOOK_MILLISECONDS : left > 1e6 ? 1000000 : (int)left + 1;
}

static void wait_once(struct host* host) {
  struct pollfd on[] = {{host->control, POLLIN, 0}, {host->started ? host->signals : -1, POLLIN, 0},
                        {host->lifeline, 0, 0},     waits_for(&host->input),
                        waits_for(&host->output),   waits_for(&host->errors)};
  if (poll(on, 6, milliseconds(host)) <= 0) return;
  if (on[0].revents != 0 || on[4].revents != 0 || on[5].revents != 0) heard(host);
  if (on[0].revents != 0) hear(host, on[0].revents);
  if (on[1].revents != 0) hand_on_signals(host);
  if (on[2].revents != 0) supervisor_gone(host);
  pump_some(&host->input, on[3].revents);
  pump_some(&host->output, on[4].revents);
  pump_some(&host->errors, on[5].revents);
  send_stream_ends(host);
}

static bool has_died(struct host* host) {
  if (!host->died) host->died = waitpid(host->machine, &host->status, WNOHANG) == host->machine;
  return host->died;
}

static int name_death(struct host* host) {
  int code =
      WIFEXITED(host->status) ? WEXITSTATUS(host->status) : SIGNALLED + WTERMSIG(host->status);
  return report_failure(host, "died", code);
}

/* One that has ended says no more, and its output may be read late. */
static bool is_silent(const struct host* host) {
  return !host->ended && now_seconds() >= host->heard + host->order.seconds &&
         now_seconds() >= silent_at(host);
}

/* Its supervisor is gone, and it did not end in its time. */
static int end_late(struct host* host) {
  end_machine(host);
  if (!host->started)
    publish_status(&host->folder, "signal 15", true, 0.0, now_seconds(), (struct node_times){0},
                   (struct progress){0});
  return OWN_FAILURE;
}

static int watch(struct host* host) {
  for (;;) {
    wait_once(host);
    if (all_printed(host)) break;
    if (has_died(host)) {
      if (host->output.ended && host->errors.ended) return name_death(host);
    } else if (host->end_at > 0.0 && now_seconds() >= host->end_at) {
      return end_late(host);
    } else if (is_silent(host)) {
      end_machine(host);
      return report_failure(host, "silent", (int)host->order.seconds);
    }
  }
  end_machine(host);
  return host->end.number;
}

/* ---- from start to end ---- */

static bool open_all(struct host* host) {
  sigset_t set;
  host->folder.fd = open(run_folder_of(&host->order), O_PATH | O_DIRECTORY | O_CLOEXEC);
  host->log = openat(host->folder.fd, "guest.log", O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC,
                     S_IRUSR | S_IWUSR);
  host->lifeline = openat(host->folder.fd, "lifeline", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  sigemptyset(&set);
  for (size_t i = 0; i < sizeof handed_on / sizeof *handed_on; i++) sigaddset(&set, handed_on[i]);
  sigprocmask(SIG_SETMASK, &set, NULL);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGCHLD, SIG_DFL); /* an inherited 'ignore' would reap QEMU */
  host->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  return host->folder.fd >= 0 && host->log >= 0 && host->lifeline >= 0 && host->signals >= 0;
}

int boot(char** words) {
  static struct host host;
  char byte = 0;
  host.order.seconds = default_seconds;
  if (!read_order(&host.order, words)) {
    fputs(
        "usage: flowos-init --boot [SECONDS | --counter | --copy FILE | --share SOURCE TARGET "
        "ro|rw]... -- QEMU... -- INIT RUNDIR -- COMMAND...\n",
        stderr);
    return OWN_FAILURE;
  }
  host.input = (struct pump){.from = STDIN_FILENO};
  host.output = (struct pump){.to = STDOUT_FILENO, .max_bytes = PIPE_BYTES};
  host.errors = (struct pump){.to = STDERR_FILENO, .max_bytes = PIPE_BYTES};
  if (!open_all(&host) || !start_machine(&host)) {
    fprintf(stderr, "flowos-init: cannot boot from %s: %s\n", run_folder_of(&host.order),
            strerror(errno));
    return OWN_FAILURE;
  }
  host.heard = now_seconds();
  if (read(host.lifeline, &byte, 1) == 0) supervisor_gone(&host);
  if (!send_request(&host)) return report_failure(&host, "died", errno);
  return watch(&host);
}
