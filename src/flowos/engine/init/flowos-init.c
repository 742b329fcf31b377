/* flowos-init RUNDIR -- COMMAND [ARG...]
 * (or: flowos-init --version, --hold; --overlay, see overlay.h; --boot, see boot.h; /init, guest.h)
 *
 * Stands between every launcher or runtime and its command, so that a start behaves alike
 * everywhere: exact environment and folder, signals handed on, no process left behind, and an
 * answer that does not depend on what the runtime makes of exit codes.
 *
 * It reads in RUNDIR file `launch`, of parts: "NAME BYTES\n", so many bytes, NUL
 *   env       NAME=VALUE, each ended by NUL: the whole environment of the command
 *   env_forwarded  optional: prefixes, each ended by NUL. Variables of our own environment that
 *             begin with one go in too, and win: they say which rank this is. Without it the
 *             command inherits no descriptors but 0, 1 and 2
 *   argv      optional: COMMAND and each ARG, ended by NUL, instead of those given: some runtimes
 *             pass on nothing but UTF-8
 *   streams   optional: the standard streams are our descriptors 3, 4 and 5, as 0, 1 and 2 are the
 *             runtime's own
 *   limits    optional: file mode mask and resource limits of the command, see command.c
 *   cwd       the folder to start in
 *   stdin_lifeline  optional, instead of `lifeline`: our standard input does the same. The
 *             supervisor is on another node, to which FIFOs do not reach. If it says `alone`, an
 *             end that `status` says is no failure of what started us, and our exit code is 0
 *   cpus      optional: numbers of the CPUs that the command is to run on
 *   relay     optional: the command sends on what is printed itself, see relay.h
 * and the files, all optional
 *   enter     lines "PID INODE [BOOT]", the last being a kernel's boot_id. Before all else join the
 *             user and mount namespaces of the first such process that is there, if the latter is
 *             still the one of that number: a container held for a gang on this node
 *   lifeline  a FIFO that the supervisor holds open for writing. When it is closed (or
 *             the supervisor is gone) the command gets TERM and, after the grace, KILL
 *   stdin     with `stdin_lifeline`: what the command reads as standard input; else nothing
 *   grace     seconds between the two, 2 if it is not there; below 0, KILL comes after as many
 *             without a TERM, to a command that sees for itself that the supervisor is gone
 *   group     the number of the process group that the terminal of a person listens to.
 *             The command and we join it, so that it is a job like any other: Ctrl-C, Ctrl-Z and a
 *             new window size reach it from the terminal itself. Where the runtime made a terminal
 *             of its own, that one listens to the command
 * and writes there, by rename
 *   started.RANK  "INIT_PID COMMAND_PID SESSION PIDS MOUNTS BOOT NODE", just before the command
 *                 runs: numbers in the pid namespace PIDS; MOUNTS is the mount namespace (0: not
 *                 known); BOOT is the kernel's boot_id, NODE its name
 *   status.RANK   "exit N", "signal N" or "error STAGE ERRNO", then lines "NAME VALUE": stopped
 *                 (1: by `lifeline`, before the command had ended), ended_seconds (monotonic
 *                 clock), what all processes that were reaped used together, what the page of
 *                 `relay` says, and with `stdin_lifeline` what all CPUs of the node did
 *                 meanwhile, for how long some process of it waited for memory and for storage,
 *                 and what its disks moved
 * STAGE is env, cwd, exec, interpreter (the file is there, what it names to run it is not), own or
 * enter.
 *
 * It is two processes: a guardian, the one that was started, waits above the other, so that the end
 * of either by SIGKILL is noticed and leaves nothing behind.
 *
 * Exit code: N, 128 + signal, 127 no such command, 126 it cannot be executed, 125 own failure.
 *
 * Here is the life of a run; run_folder.c reads and writes those files, descriptors.c sees to what
 * is inherited, command.c starts the command, overlay.c gives an image the mount points it lacks.
 */
#define _GNU_SOURCE
#include "flowos-init.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "command.h"
#include "descriptors.h"
#include "enter.h"
#include "relay.h"
#include "run_folder.h"

enum { OWN_FAILURE = 125, NOT_EXECUTABLE = 126, NOT_FOUND = 127, SIGNALLED = 128 };

static const char* const stage_names[] = {"env", "cwd", "exec", "interpreter", "own", "enter"};
static const int forwarded[] = {SIGTERM, SIGINT,  SIGHUP,  SIGQUIT,
                                SIGUSR1, SIGUSR2, SIGCONT, SIGTSTP};
static const double default_grace_seconds = 2.0;
static const double sweep_seconds = 5.0;
static const double same_signal_seconds = 1.0;

struct run {
  struct run_folder folder;
  struct job job;
  struct relay relay;
  int lifeline;   /* -1: no supervisor to watch, or not any more; 0: standard input */
  int signals;    /* signalfd */
  pid_t guardian; /* 0: none */
  pid_t command;
  bool alone, stopped;
  double kill_at; /* monotonic seconds; 0: not set */
  double began;
  struct node_times before;   /* on another node than the supervisor's, which has its own */
  double from_terminal[NSIG]; /* when the terminal sent it to all of the group; 0: never */
};

static double now_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The exit code that goes with it. */
static int write_status(struct run* run, const char* end, int code) {
  struct progress said = close_relay(&run->relay);
  bool written = publish_status(&run->folder, end, run->stopped, run->began, now_seconds(),
                                node_times_since(run->before), said);
  return written && run->alone ? 0 : code;
}

static int fail(struct run* run, struct failure f) {
  char end[64];
  snprintf(end, sizeof end, "error %s %d", stage_names[f.stage], f.error);
  int code = f.error == ENOENT ? NOT_FOUND : NOT_EXECUTABLE;
  return write_status(run, end, f.stage == EXEC || f.stage == INTERPRETER ? code : OWN_FAILURE);
}

static sigset_t block_signals(void) {
  sigset_t set;
  for (int s = 1; s < NSIG; s++) signal(s, SIG_DFL); /* an inherited 'ignore' would hide signals */
  signal(SIGPIPE, SIG_IGN);                          /* our stderr may be gone before we are */
  signal(SIGTTIN, SIG_IGN); /* a command that waits for its terminal must not stop us too */
  signal(SIGTTOU, SIG_IGN);
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  for (size_t i = 0; i < sizeof forwarded / sizeof *forwarded; i++) sigaddset(&set, forwarded[i]);
  sigprocmask(SIG_SETMASK, &set, NULL);
  return set;
}

/* ---- while the command runs ---- */

static void signal_command(const struct run* run, int number) {
  kill(-run->command, number);
  if (getpgid(run->command) != run->command) kill(run->command, number);
}

/* What is ours to end: with us as subreaper, every orphan below us becomes our child. */
static void kill_children(void) {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/task/%ld/children", (long)getpid());
  char* text = read_file(AT_FDCWD, path, NULL);
  if (text == NULL) return;
  char* at = text;
  for (;;) {
    char* end = at;
    long pid = strtol(at, &end, 10);
    if (end == at) break;
    if (pid > 1) kill((pid_t)pid, SIGKILL);
    at = end;
  }
  free(text);
}

static void stop_command(struct run* run) {
  double grace = default_grace_seconds;
  char* text = read_file(run->folder.fd, "grace", NULL);
  if (text != NULL) grace = strtod(text, NULL);
  free(text);
  /* a shell that has the terminal would fight for it with the one that has it now */
  if (run->job.group > 0 && getpgid(run->command) == run->command) grace = 0.0;
  run->stopped = true;
  run->kill_at = now_seconds() + fabs(grace);
  if (grace > 0.0) {
    signal_command(run, SIGTERM);
    signal_command(run, SIGCONT); /* a stopped process takes TERM only when it goes on */
  }
}

/* In a terminal's job: what the terminal sends has reached the command too, and our supervisor,
 * which hands it on to us. */
static bool has_reached_command(struct run* run, const struct signalfd_siginfo* info) {
  if (run->job.group == 0 || info->ssi_signo >= NSIG) return false;
  double* sent = &run->from_terminal[info->ssi_signo];
  if (info->ssi_code == SI_KERNEL) *sent = now_seconds();
  return *sent > 0.0 && now_seconds() < *sent + same_signal_seconds;
}

static void forward_signals(struct run* run) {
  struct signalfd_siginfo info;
  while (read(run->signals, &info, sizeof info) == (ssize_t)sizeof info)
    if (info.ssi_signo != SIGCHLD && !has_reached_command(run, &info))
      signal_command(run, (int)info.ssi_signo);
}

/* In a terminal of a runtime's own no process could ever continue it. */
static void keep_going(const struct run* run) {
  siginfo_t info = {0};
  if (!run->job.terminal) return;
  if (waitid(P_PID, (id_t)run->command, &info, WSTOPPED | WNOHANG) == 0 && info.si_pid != 0)
    signal_command(run, SIGCONT);
}

static bool lost_guardian(const struct run* run) {
  return run->guardian > 0 && getppid() != run->guardian;
}

/* Reaps others; the command stays a zombie, so that its process group's number stays its own. */
static bool command_ended(const struct run* run) {
  for (;;) {
    siginfo_t info = {0};
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return false;
    if (info.si_pid == run->command) return true;
    waitpid(info.si_pid, NULL, WNOHANG);
  }
}

static int milliseconds_until(double when) {
  double left = (when - now_seconds()) * 1e3;
  if (left <= 0.0) return 0;
  return left > 1e6 ? 1000000 : (int)left + 1;
}

static bool is_over(const struct run* run) { return command_ended(run) || lost_guardian(run); }

static void kill_when_due(struct run* run) {
  if (run->kill_at <= 0.0 || now_seconds() < run->kill_at) return;
  signal_command(run, SIGKILL);
  kill_children();
  run->kill_at = 0.0;
}

/* Or for the end of our guardian. */
static void wait_for_command(struct run* run) {
  while (!is_over(run)) {
    keep_going(run);
    struct pollfd on[2] = {{run->signals, POLLIN, 0}, {run->lifeline, 0, 0}}; /* its end alone */
    int ready = poll(on, 2, run->kill_at > 0.0 ? milliseconds_until(run->kill_at) : -1);
    kill_when_due(run);
    if (ready <= 0) continue;
    if (on[1].revents != 0) {
      run->lifeline = -1;
      if (!command_ended(run)) stop_command(run);
    }
    if (on[0].revents != 0) forward_signals(run);
  }
}

/* Ends and reaps all that the command left. A process that the kernel cannot end (it hangs in a
 * device) must not hang us too, so this gives up after a while. */
static void sweep(void) {
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  const struct timespec tick = {0, 20000000};
  double until = now_seconds() + sweep_seconds;
  while (now_seconds() < until) {
    pid_t reaped = 0;
    do reaped = waitpid(-1, NULL, WNOHANG);
    while (reaped > 0);
    if (reaped < 0) return;
    kill_children();
    sigtimedwait(&child, NULL, &tick);
  }
}

static int finish(struct run* run) {
  int status = 0;
  char end[32];
  kill(-run->command, SIGKILL);
  waitpid(run->command, &status, 0);
  sweep();
  if (lost_guardian(run)) return OWN_FAILURE; /* as if we had been killed: without an answer */
  int code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
  snprintf(end, sizeof end, "%s %d", WIFSIGNALED(status) ? "signal" : "exit", code);
  return write_status(run, end, WIFSIGNALED(status) ? SIGNALLED + code : code);
}

/* ---- from start to end ---- */

/* Our standard input: nothing is sent along it. */
static bool lifeline_holds(struct run* run, const char* said) {
  struct pollfd on = {STDIN_FILENO, 0, 0};
  run->lifeline = STDIN_FILENO;
  run->before = read_node_times();
  run->alone = strcmp(said, "alone") == 0;
  return poll(&on, 1, 0) == 0;
}

/* Opens `lifeline`. False if the supervisor is gone already. */
static bool supervisor_lives(struct run* run, struct failure* f) {
  char byte = 0;
  *f = (struct failure){OWN, 0};
  const char* said = part_of(&run->folder, "stdin_lifeline", NULL);
  if (said != NULL) return lifeline_holds(run, said);
  run->lifeline = openat(run->folder.fd, "lifeline", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (run->lifeline < 0 && errno != ENOENT) f->error = errno;
  /* poll() does not report a writer that left before we came; read() does: 0, not EAGAIN */
  return run->lifeline < 0 || read(run->lifeline, &byte, 1) != 0;
}

static struct job find_job(const struct run_folder* folder) {
  struct job job = {0, false};
  char* text = read_file(folder->fd, "group", NULL);
  if (text == NULL) return job;
  pid_t group = (pid_t)strtol(text, NULL, 10);
  free(text);
  if (group > 0 && setpgid(0, group) == 0)
    job.group = group;
  else
    job.terminal = true; /* a session of its own */
  return job;
}

static int supervise(struct run* run, char** argv) {
  struct failure f;
  char** variables = read_environment(&run->folder);
  argv = read_words(&run->folder, argv);
  if (variables == NULL || argv == NULL) return fail(run, (struct failure){ENV, errno});
  const sigset_t set = block_signals();
  run->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (run->signals < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
    return fail(run, (struct failure){OWN, errno});
  if (!supervisor_lives(run, &f)) {
    run->stopped = true;
    return write_status(run, "signal 15", SIGNALLED + SIGTERM);
  }
  if (f.error == 0 && part_of(&run->folder, "relay", NULL) != NULL)
    f.error = open_relay(&run->relay);
  if (f.error != 0) return fail(run, f);
  run->job = find_job(&run->folder);
  run->command = start_command(&run->folder, run->job, &run->relay, argv, variables, &f);
  if (run->command < 0) return fail(run, f);
  wait_for_command(run);
  return finish(run);
}

/* ---- the guardian ---- */

/* Ends as `status` says that another ended. */
static int end_like(int status) {
  if (!WIFSIGNALED(status)) return WEXITSTATUS(status);
  signal(WTERMSIG(status), SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  raise(WTERMSIG(status));
  return SIGNALLED + WTERMSIG(status);
}

static int stand_guard(pid_t init, const sigset_t* set) {
  int status = 0;
  siginfo_t info;
  while (waitpid(init, &status, WNOHANG) != init)
    if (sigwaitinfo(set, &info) > 0 && info.si_signo != SIGCHLD) kill(init, info.si_signo);
  sweep();
  return end_like(status);
}

/* The children of a killed process pass to its ancestor. So above us is a process that does nothing
 * but wait: if we are killed, it ends all that we leave; if it is killed, we end all that is
 * ours. A signal to its group reaches us through it, once. True in the process that goes on. */
static bool get_guardian(struct run* run, int* code) {
  const pid_t guardian = getpid();
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return true;
  const sigset_t set = block_signals(); /* before there is a command to get them */
  const pid_t init = fork();
  if (init < 0) return true;
  if (init > 0) {
    *code = stand_guard(init, &set);
    return false;
  }
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGCHLD); /* wakes us as the end of the command does */
  run->guardian = guardian;
  return true;
}

int run_command(char** argv) {
  static struct run run;
  run = (struct run){.folder.rank = own_rank(), .relay = no_relay(), .began = now_seconds()};
  run.folder.fd = open(argv[1], O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (run.folder.fd < 0) {
    fprintf(stderr, "flowos-init: cannot open %s: %s\n", argv[1], strerror(errno));
    return OWN_FAILURE;
  }
  int code = open_launch(&run.folder);
  if (code != 0) return fail(&run, (struct failure){ENV, code});
  if (part_of(&run.folder, "streams", NULL) != NULL) code = take_streams();
  if (code != 0) return fail(&run, (struct failure){OWN, code});
  /* the wire to a rank may be one (PMI_FD) */
  if (part_of(&run.folder, "env_forwarded", NULL) == NULL) close_inherited(run.folder.fd);
  code = enter_container(run.folder.fd);
  if (code != 0) return fail(&run, (struct failure){ENTER, code});
  return get_guardian(&run, &code) ? supervise(&run, argv + 3) : code;
}
