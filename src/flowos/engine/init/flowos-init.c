/* flowos-init RUNDIR -- COMMAND [ARG...]      (or: flowos-init --version)
 *
 * Stands between every launcher or runtime and its command, so that a start behaves alike
 * everywhere: exact environment and folder, signals handed on, no process left behind, and an
 * answer that does not depend on what the runtime makes of exit codes.
 *
 * It reads in RUNDIR
 *   env       NAME=VALUE, each ended by NUL: the whole environment of the command
 *   passes    optional: prefixes, each ended by NUL. Variables of our own environment that begin
 *             with one go in too, and win: they say which rank this is
 *   cwd       the folder to start in
 *   alive     optional: a FIFO that the supervisor holds open for writing. When it is closed (or
 *             the supervisor is gone) the command gets TERM and, after the grace, KILL
 *   grace     optional: seconds between the two, 2 if it is not there
 * and writes there, by rename
 *   started.RANK  "INIT_PID COMMAND_PID SESSION NAMESPACE", just before the command runs:
 *                 numbers of this pid namespace (0: not known)
 *   status.RANK   "exit N", "signal N" or "error STAGE ERRNO", then lines "NAME VALUE": stopped
 *                 (1: by `alive`, before the command had ended), ended_seconds (monotonic clock),
 *                 and what all processes that were reaped used together
 * STAGE is env, cwd, exec, interpreter (the file is there, what it names to run it is not) or own.
 *
 * Exit code: N, 128 + signal, 127 no such command, 126 it cannot be executed, 125 own failure.
 */
/* C libraries differ in which header holds the names of poll() and prctl(). */
/* NOLINTBEGIN(misc-include-cleaner) */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { OWN_FAILURE = 125, NOT_EXECUTABLE = 126, NOT_FOUND = 127, SIGNALLED = 128 };
enum stage { ENV, CWD, EXEC, INTERPRETER, OWN };

static const char* const stage_names[] = {"env", "cwd", "exec", "interpreter", "own"};
static const int forwarded[] = {SIGTERM, SIGINT,  SIGHUP,  SIGQUIT,
                                SIGUSR1, SIGUSR2, SIGCONT, SIGTSTP};
static const double default_grace_seconds = 2.0;
static const double sweep_seconds = 5.0;
static const char default_path[] = "/usr/local/bin:/usr/bin:/bin";

struct failure {
  enum stage stage;
  int error;
};

struct run {
  int folder;  /* RUNDIR */
  int alive;   /* -1: nobody to watch, or not any more */
  int signals; /* signalfd */
  unsigned long rank;
  pid_t command; /* leads its own process group */
  bool stopped;
  char* text;       /* of file `env` */
  char** variables; /* the command's environment: points into `text` and our own */
  double kill_at;   /* monotonic seconds; 0: not set */
  double began;
};

static double now_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double seconds_of(struct timeval t) { return (double)t.tv_sec + (double)t.tv_usec * 1e-6; }

/* ---- files of the run folder ---- */

static ssize_t read_some(int fd, void* to, size_t most) {
  ssize_t got = 0;
  do got = read(fd, to, most);
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

/* The whole file, as above. `size` may be NULL. */
static char* read_file(int folder, const char* name, size_t* size) {
  size_t ignored = 0;
  int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return NULL;
  char* text = read_all(fd, size != NULL ? size : &ignored);
  int error = errno;
  close(fd);
  errno = error;
  return text;
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

/* Readers see the whole file or none. */
static void publish(const struct run* run, const char* what, const char* text) {
  char name[48];
  char hidden[sizeof name + 1];
  snprintf(name, sizeof name, "%s.%lu", what, run->rank);
  snprintf(hidden, sizeof hidden, ".%s", name);
  int fd = openat(run->folder, hidden, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
                  S_IRUSR | S_IWUSR);
  bool good = fd >= 0 && write_all(fd, text);
  if (fd >= 0 && close(fd) != 0) good = false;
  if (!good || renameat(run->folder, hidden, run->folder, name) != 0)
    fprintf(stderr, "flowos-init: cannot write %s: %s\n", name, strerror(errno));
}

static void publish_started(const struct run* run, pid_t init, pid_t command) {
  char text[128];
  struct stat pids = {0};
  stat("/proc/self/ns/pid", &pids);
  snprintf(text, sizeof text, "%ld %ld %ld %llu\n", (long)init, (long)command, (long)getsid(0),
           (unsigned long long)pids.st_ino);
  publish(run, "started", text);
}

static void take_back_started(const struct run* run) {
  char name[48];
  snprintf(name, sizeof name, "started.%lu", run->rank);
  unlinkat(run->folder, name, 0);
}

static void publish_status(const struct run* run, const char* end) {
  struct rusage used;
  getrusage(RUSAGE_CHILDREN, &used);
  double now = now_seconds();
  char text[512];
  snprintf(text, sizeof text,
           "%s\nstopped %d\nended_seconds %.6f\nwall_seconds %.6f\nuser_seconds %.6f\n"
           "system_seconds %.6f\nmax_rss_bytes %lld\n",
           end, run->stopped ? 1 : 0, now, now - run->began, seconds_of(used.ru_utime),
           seconds_of(used.ru_stime), (long long)used.ru_maxrss * 1024);
  publish(run, "status", text);
}

static int fail(const struct run* run, struct failure f) {
  char end[64];
  snprintf(end, sizeof end, "error %s %d", stage_names[f.stage], f.error);
  publish_status(run, end);
  if (f.stage != EXEC && f.stage != INTERPRETER) return OWN_FAILURE;
  return f.error == ENOENT ? NOT_FOUND : NOT_EXECUTABLE;
}

/* ---- environment ---- */

static bool begins_with_one_of(const char* variable, const char* prefixes, size_t size) {
  for (const char* p = prefixes; p < prefixes + size; p += strlen(p) + 1)
    if (*p != '\0' && strncmp(variable, p, strlen(p)) == 0) return true;
  return false;
}

static bool names_one_of(const char* variable, char* const* others, size_t count) {
  size_t length = strcspn(variable, "=") + 1; /* with the '=' */
  for (size_t i = 0; i < count; i++)
    if (strncmp(variable, others[i], length) == 0) return true;
  return false;
}

static size_t strings_in(const char* text, size_t size) {
  size_t count = 0;
  for (const char* s = text; s < text + size; s += strlen(s) + 1) count++;
  return count;
}

/* Variables of `text`, and those of our own environment that `passes` lets through. */
static char** merge(char* text, size_t size, const char* passes, size_t passes_size) {
  size_t most = strings_in(text, size) + 1;
  for (char** e = environ; *e != NULL; e++) most++;
  char** variables = (char**)calloc(most, sizeof *variables);
  if (variables == NULL) return NULL;
  size_t count = 0;
  for (char** e = environ; *e != NULL; e++)
    if (begins_with_one_of(*e, passes, passes_size)) variables[count++] = *e;
  size_t passed = count;
  for (char* s = text; s < text + size; s += strlen(s) + 1)
    if (*s != '\0' && !names_one_of(s, variables, passed)) variables[count++] = s;
  return variables;
}

/* False, with errno, if the command's environment cannot be read. */
static bool read_environment(struct run* run) {
  size_t size = 0;
  size_t passes_size = 0;
  run->text = read_file(run->folder, "env", &size);
  if (run->text == NULL) return false;
  char* passes = read_file(run->folder, "passes", &passes_size);
  if (passes == NULL && errno != ENOENT) return false;
  run->variables = merge(run->text, size, passes, passes_size);
  free(passes);
  return run->variables != NULL;
}

static const char* value_of(char* const* variables, const char* name) {
  size_t length = strlen(name);
  for (; *variables != NULL; variables++)
    if (strncmp(*variables, name, length) == 0 && (*variables)[length] == '=')
      return *variables + length + 1;
  return NULL;
}

/* Which rank the launcher made us; 0 without one. */
static unsigned long own_rank(void) {
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

/* ---- the command ---- */

static void block_signals(struct run* run) {
  sigset_t set;
  for (int s = 1; s < NSIG; s++) signal(s, SIG_DFL); /* an inherited 'ignore' would hide signals */
  signal(SIGPIPE, SIG_IGN);                          /* our stderr may be gone before we are */
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  for (size_t i = 0; i < sizeof forwarded / sizeof *forwarded; i++) sigaddset(&set, forwarded[i]);
  sigprocmask(SIG_SETMASK, &set, NULL);
  run->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static struct failure try_file(const char* path, char** argv, char** variables) {
  execve(path, argv, variables);
  struct failure f = {EXEC, errno};
  if (f.error == ENOENT && access(path, F_OK) == 0) f.stage = INTERPRETER;
  return f;
}

static bool worth_looking_on(struct failure f) {
  return f.stage == EXEC && (f.error == ENOENT || f.error == ENOTDIR || f.error == EACCES ||
                             f.error == ENAMETOOLONG || f.error == ELOOP || f.error == ESTALE);
}

/* Returns only if nothing could be executed. Unlike execvp() it never hands a file of unknown
 * format to a shell: the binary of another machine is an error, not a script. */
static struct failure execute(char** argv, char** variables) {
  if (strchr(argv[0], '/') != NULL) return try_file(argv[0], argv, variables);
  struct failure worst = {EXEC, ENOENT};
  const char* path = value_of(variables, "PATH");
  if (path == NULL) path = default_path;
  char* candidate = malloc(strlen(path) + strlen(argv[0]) + 3);
  if (candidate == NULL) return (struct failure){OWN, ENOMEM};
  while (argv[0][0] != '\0') {
    size_t length = strcspn(path, ":");
    const char* folder = length == 0 ? "." : path;
    sprintf(candidate, "%.*s/%s", length == 0 ? 1 : (int)length, folder, argv[0]);
    struct failure f = try_file(candidate, argv, variables);
    if (!worth_looking_on(f)) return f;
    if (f.error == EACCES) worst = f;
    if (path[length] == '\0') break;
    path += length + 1;
  }
  return worst;
}

/* In the child: becomes the command, or says through `report` why not. */
static _Noreturn void become(const struct run* run, char** argv, pid_t parent, int report) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(OWN_FAILURE); /* it died before the line above */
  sigset_t none;
  sigemptyset(&none);
  signal(SIGPIPE, SIG_DFL);
  sigprocmask(SIG_SETMASK, &none, NULL);
  struct failure f;
  const char* cwd = read_file(run->folder, "cwd", NULL);
  if (cwd == NULL || chdir(cwd) != 0)
    f = (struct failure){CWD, errno};
  else {
    publish_started(run, parent, getpid()); /* before it can do anything that should be found */
    f = execute(argv, run->variables);
    take_back_started(run);
  }
  while (write(report, &f, sizeof f) < 0 && errno == EINTR) continue;
  _exit(OWN_FAILURE);
}

/* True once the command runs; else `f` says why not. */
static bool start(struct run* run, char** argv, struct failure* f) {
  int report[2];
  *f = (struct failure){OWN, 0};
  if (pipe2(report, O_CLOEXEC) != 0) {
    f->error = errno;
    return false;
  }
  pid_t parent = getpid();
  run->command = fork();
  if (run->command == 0) become(run, argv, parent, report[1]);
  f->error = errno;
  close(report[1]);
  bool runs = false;
  if (run->command > 0) {
    setpgid(run->command, run->command); /* both sides do it: whoever is first */
    runs = read_some(report[0], f, sizeof *f) == 0;
    if (!runs) waitpid(run->command, NULL, 0);
  }
  close(report[0]);
  return runs;
}

/* ---- while it runs ---- */

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
  char* text = read_file(run->folder, "grace", NULL);
  if (text != NULL) grace = strtod(text, NULL);
  free(text);
  run->stopped = true;
  run->kill_at = now_seconds() + (grace > 0.0 ? grace : 0.0);
  if (grace > 0.0) {
    signal_command(run, SIGTERM);
    signal_command(run, SIGCONT); /* a stopped process takes TERM only when it goes on */
  }
}

static void forward_signals(const struct run* run) {
  struct signalfd_siginfo info;
  while (read(run->signals, &info, sizeof info) == (ssize_t)sizeof info)
    if (info.ssi_signo != SIGCHLD) signal_command(run, (int)info.ssi_signo);
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

static void wait_for_command(struct run* run) {
  while (!command_ended(run)) {
    struct pollfd on[2] = {{run->signals, POLLIN, 0}, {run->alive, 0, 0}};
    int ready = poll(on, 2, run->kill_at > 0.0 ? milliseconds_until(run->kill_at) : -1);
    if (run->kill_at > 0.0 && now_seconds() >= run->kill_at) {
      signal_command(run, SIGKILL);
      kill_children();
      run->kill_at = 0.0;
    }
    if (ready <= 0) continue;
    if (on[1].revents != 0) {
      run->alive = -1;
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

static int finish(const struct run* run) {
  int status = 0;
  char end[32];
  kill(-run->command, SIGKILL);
  waitpid(run->command, &status, 0);
  sweep();
  int code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
  snprintf(end, sizeof end, "%s %d", WIFSIGNALED(status) ? "signal" : "exit", code);
  publish_status(run, end);
  return WIFSIGNALED(status) ? SIGNALLED + code : code;
}

/* ---- */

/* Opens `alive`. False if whoever wanted the command is gone already. */
static bool supervisor_lives(struct run* run, struct failure* f) {
  char byte = 0;
  *f = (struct failure){OWN, 0};
  run->alive = openat(run->folder, "alive", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (run->alive < 0 && errno != ENOENT) f->error = errno;
  /* poll() does not tell of a writer that left before we came; read() does: 0, not EAGAIN */
  return run->alive < 0 || read(run->alive, &byte, 1) != 0;
}

static int supervise(struct run* run, char** argv) {
  struct failure f = {ENV, 0};
  if (!read_environment(run)) {
    f.error = errno;
    return fail(run, f);
  }
  block_signals(run);
  if (run->signals < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
    return fail(run, (struct failure){OWN, errno});
  if (!supervisor_lives(run, &f)) {
    run->stopped = true;
    publish_status(run, "signal 15");
    return SIGNALLED + SIGTERM;
  }
  if (f.error != 0) return fail(run, f);
  if (!start(run, argv, &f)) return fail(run, f);
  wait_for_command(run);
  return finish(run);
}

int main(int argc, char** argv) {
  if (argc == 2 && strcmp(argv[1], "--version") == 0) {
    puts("flowos-init 1");
    return 0;
  }
  if (argc < 4 || strcmp(argv[2], "--") != 0) {
    fputs("usage: flowos-init RUNDIR -- COMMAND [ARG...]\n", stderr);
    return OWN_FAILURE;
  }
  static struct run run;
  run = (struct run){.alive = -1, .rank = own_rank(), .began = now_seconds()};
  run.folder = open(argv[1], O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (run.folder < 0) {
    fprintf(stderr, "flowos-init: cannot open %s: %s\n", argv[1], strerror(errno));
    return OWN_FAILURE;
  }
  return supervise(&run, argv + 3);
}
/* NOLINTEND(misc-include-cleaner) */
