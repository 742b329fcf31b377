#define _GNU_SOURCE
#include "command.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LAST_SIGNAL = 64 };
static const char default_path[] = "/usr/local/bin:/usr/bin:/bin";

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

/* Variables of `text`, and those of our own environment that `env_forwarded` lets through. */
static char** merge(char* text, size_t size, const char* forwarded, size_t forwarded_size) {
  size_t max_count = size + 1; /* no string is shorter than its NUL */
  for (char** e = environ; *e != NULL; e++) max_count++;
  char** variables = (char**)calloc(max_count, sizeof *variables);
  if (variables == NULL) return NULL;
  size_t count = 0;
  for (char** e = environ; *e != NULL; e++)
    if (begins_with_one_of(*e, forwarded, forwarded_size)) variables[count++] = *e;
  size_t passed = count;
  for (char* s = text; s < text + size; s += strlen(s) + 1)
    if (*s != '\0' && !names_one_of(s, variables, passed)) variables[count++] = s;
  return variables;
}

char** read_environment(const struct run_folder* folder) {
  static char** variables; /* they point into `launch` and our own environment */
  size_t size = 0;
  size_t forwarded_size = 0;
  char* text = part_of(folder, "env", &size);
  const char* forwarded = part_of(folder, "env_forwarded", &forwarded_size);
  errno = ENOENT;
  if (text != NULL)
    variables = merge(text, size, forwarded == NULL ? "" : forwarded, forwarded_size);
  return variables;
}

char** read_words(const struct run_folder* folder, char** given) {
  static char** words; /* they point into `launch` */
  size_t size = 0;
  char* text = part_of(folder, "argv", &size);
  if (text == NULL) return given;
  words = (char**)calloc(size + 1, sizeof *words);
  if (words == NULL) return NULL;
  char** next = words;
  for (char* s = text; s < text + size; s += strlen(s) + 1) *next++ = s;
  return words;
}

static const char* value_of(char* const* variables, const char* name) {
  size_t length = strlen(name);
  for (; *variables != NULL; variables++)
    if (strncmp(*variables, name, length) == 0 && (*variables)[length] == '=')
      return *variables + length + 1;
  return NULL;
}

/* ---- start ---- */

static struct failure try_file(const char* path, char** argv, char** variables) {
  execve(path, argv, variables);
  struct failure f = {EXEC, errno};
  if (f.error == ENOENT && access(path, F_OK) == 0) f.stage = INTERPRETER;
  if (f.error != EACCES) return f;
  struct stat status;
  if (stat(path, &status) == 0 && S_ISDIR(status.st_mode))
    f.error = EISDIR;
  else if (access(path, X_OK) == 0)
    f.stage = INTERPRETER;
  return f;
}

static bool worth_looking_on(struct failure f) {
  return f.stage == EXEC &&
         (f.error == ENOENT || f.error == ENOTDIR || f.error == EACCES || f.error == EISDIR ||
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

/* By system calls: the C library keeps signals 32 and 33 to itself, and its posix_spawn, by which
 * we may have been started, leaves them ignored. */
static void default_signals(void) {
  const unsigned long zeros[8] = {0}; /* no handler, no flags, no mask, for any architecture */
  for (int number = 1; number <= LAST_SIGNAL; number++)
    syscall(SYS_rt_sigaction, number, zeros, NULL, LAST_SIGNAL / 8);
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, zeros, NULL, LAST_SIGNAL / 8);
}

/* Lines "umask OCTAL" and "NUMBER SOFT HARD", the limits of setrlimit(): as our supervisor has
 * them, whatever the runtime made of them on the way. A hard limit cannot be raised. */
static void take_limits(const char* text) {
  unsigned mask = 0;
  int which = 0;
  unsigned long long soft = 0;
  unsigned long long hard = 0;
  for (const char* line = text; line != NULL && *line != '\0';) {
    struct rlimit now;
    if (sscanf(line, "umask %o", &mask) == 1)
      umask((mode_t)mask);
    else if (sscanf(line, "%d %llu %llu", &which, &soft, &hard) == 3 &&
             getrlimit((unsigned)which, &now) == 0) {
      if (now.rlim_max > hard) now.rlim_max = hard;
      now.rlim_cur = soft < now.rlim_max ? soft : now.rlim_max;
      setrlimit((unsigned)which, &now);
    }
    const char* end = strchr(line, '\n');
    line = end == NULL ? NULL : end + 1;
  }
}

/* As far as they are ours. */
static void take_cpus(char* text) {
  cpu_set_t cpus;
  if (text == NULL) return;
  CPU_ZERO(&cpus);
  for (char *at = text, *end = text;; at = end) {
    long cpu = strtol(at, &end, 10);
    if (end == at) break;
    if (cpu >= 0 && cpu < CPU_SETSIZE) CPU_SET((size_t)cpu, &cpus);
  }
  sched_setaffinity(0, sizeof cpus, &cpus);
}

struct start {
  const struct relay* relay;
  char** argv;
  char** variables;
  pid_t parent;
  int report;
};

/* Where our own is the lifeline. Returns errno. */
static int take_input(const struct run_folder* folder) {
  if (part_of(folder, "stdin_lifeline", NULL) == NULL) return 0;
  int input = openat(folder->fd, "stdin", O_RDONLY | O_CLOEXEC);
  if (input < 0 && errno == ENOENT) input = open("/dev/null", O_RDONLY | O_CLOEXEC);
  return input >= 0 && dup2(input, STDIN_FILENO) >= 0 ? 0 : errno;
}

/* SIGTTOU is ignored here: we are not the terminal's foreground group yet. */
static void take_terminal(void) {
  int terminal = open("/dev/tty", O_RDWR | O_CLOEXEC);
  if (terminal < 0) return;
  tcsetpgrp(terminal, getpgrp());
  close(terminal);
}

/* In the child: becomes the command, or says through `report` why not. */
static _Noreturn void become(struct run_folder folder, struct job job, struct start start) {
  setpgid(0, job.group);
  if (job.terminal) take_terminal();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != start.parent) _exit(EXIT_FAILURE); /* it died before the line above */
  default_signals();
  int kept[] = {folder.fd, start.report};
  struct failure f = {OWN, take_input(&folder)};
  if (f.error == 0) f.error = take_relay(start.relay, kept, 2);
  folder.fd = kept[0];
  start.report = kept[1];
  const char* cwd = part_of(&folder, "cwd", NULL);
  if (f.error == 0 && cwd == NULL) f = (struct failure){CWD, ENOENT};
  if (f.error == 0 && chdir(cwd) != 0) f = (struct failure){CWD, errno};
  if (f.error == 0) {
    /* before it can do anything that should be found */
    publish_started(&folder, start.parent, getpid());
    take_limits(part_of(&folder, "limits", NULL));
    take_cpus(part_of(&folder, "cpus", NULL));
    f = execute(start.argv, start.variables);
    take_back_started(&folder);
  }
  while (write(start.report, &f, sizeof f) < 0 && errno == EINTR) continue;
  _exit(EXIT_FAILURE);
}

pid_t start_command(const struct run_folder* folder, struct job job, const struct relay* relay,
                    char** argv, char** variables, struct failure* why) {
  int report[2];
  *why = (struct failure){OWN, 0};
  if (pipe2(report, O_CLOEXEC) != 0) {
    why->error = errno;
    return -1;
  }
  const struct start start = {relay, argv, variables, getpid(), report[1]};
  pid_t command = fork();
  if (command == 0) become(*folder, job, start);
  why->error = errno;
  close(report[1]);
  if (command > 0) {
    setpgid(command, job.group > 0 ? job.group : command); /* both sides do it: whoever is first */
    if (read_some(report[0], why, sizeof *why) != 0) {
      waitpid(command, NULL, 0);
      command = -1;
    }
  }
  close(report[0]);
  return command;
}
