/* Clients of a storage system: processes that work at the same time, and say when and how much.
 *
 * They are forked by one program; compiled by an MPI's compiler with -DFLOWOS_MPI they are its
 * ranks, on any number of nodes. If one fails, or is ended, all end: one line says why. */
#ifndef FLOWOS_CLIENTS_H
#define FLOWOS_CLIENTS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef FLOWOS_MPI
#include <mpi.h>
#else
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#endif

#include "flowos_measure.h"

enum { FM_MAX_CLIENTS = 4096, FM_PATH_BYTES = 1024 };

/* Of one client: when its part of a phase began and ended, and how much it did. */
struct fm_part {
  double start, end;
  int64_t done;
};

/* Of all clients: what they did, each by itself and together, and for how long: from the first
 * start to the last end. */
struct fm_phase {
  struct fm_part parts[FM_MAX_CLIENTS];
  int64_t done;
  double seconds;
};

static struct {
  const char *program;
  int number, count; /* this client, and all of them */
} fm_client = {"", 0, 1};

/* --- the two ways: processes of this node, ranks of an MPI program ------------------------- */

#ifdef FLOWOS_MPI

static inline int fm_says_why(void) { return 1; }

/* After a while: what mpirun has not passed on yet when a rank aborts is lost. */
__attribute__((noreturn)) static inline void fm_leave(int code) {
  const struct timespec nap = {0, 500000000};
  fflush(NULL);
  nanosleep(&nap, NULL);
  MPI_Abort(MPI_COMM_WORLD, code);
  exit(code);
}

static inline void fm_meet(void) { MPI_Barrier(MPI_COMM_WORLD); }

/* Clocks of several nodes differ: each counts from its own start until all have ended, so that the
 * first to start has the whole phase, as in mdtest. */
static inline void fm_gather(struct fm_part mine, struct fm_part *all) {
  fm_meet();
  mine.end = fm_seconds() - mine.start;
  mine.start = 0;
  // NOLINTNEXTLINE(bugprone-casting-through-void): Open MPI's constants are such casts.
  MPI_Allgather(&mine, sizeof mine, MPI_BYTE, all, sizeof mine, MPI_BYTE, MPI_COMM_WORLD);
}

#else

enum { FM_YIELDS = 1000, FM_NAP_NANOSECONDS = 100000, FM_MAX_NAPS = 20000 };
enum { FM_NONE_FAILED, FM_SAYS_WHY, FM_SAID };

static struct fm_board {
  atomic_int failed;
  _Alignas(64) atomic_long arrived;
  struct fm_part parts[FM_MAX_CLIENTS];
} *fm_board;

/* Is it the first client that failed? The others end without a word, once it has said why: the end
 * of any one ends all. */
static inline int fm_says_why(void) {
  const struct timespec nap = {0, FM_NAP_NANOSECONDS};
  int before = FM_NONE_FAILED;
  if (!fm_board || atomic_compare_exchange_strong(&fm_board->failed, &before, FM_SAYS_WHY))
    return 1;
  for (int naps = 0; naps < FM_MAX_NAPS && atomic_load(&fm_board->failed) != FM_SAID; naps++)
    nanosleep(&nap, NULL);
  return 0;
}

__attribute__((noreturn)) static inline void fm_leave(int code) {
  fflush(NULL);
  if (fm_board) atomic_store(&fm_board->failed, FM_SAID);
  exit(code);
}

/* Waits for all clients: awake at first, so that they begin together, then in naps, which leave the
 * cores to those that still work. */
static inline void fm_meet(void) {
  static long meetings = 0;
  const long all = ++meetings * fm_client.count;
  const struct timespec nap = {0, FM_NAP_NANOSECONDS};
  atomic_fetch_add(&fm_board->arrived, 1);
  for (int waits = 0; atomic_load(&fm_board->arrived) < all; waits++)
    if (waits < FM_YIELDS)
      sched_yield();
    else
      nanosleep(&nap, NULL);
}

static inline void fm_gather(struct fm_part mine, struct fm_part *all) {
  fm_board->parts[fm_client.number] = mine;
  fm_meet();
  memcpy(all, fm_board->parts, sizeof *all * (size_t)fm_client.count);
  fm_meet(); /* before one gives its next part */
}

#endif

/* --- refusals ------------------------------------------------------------------------------ */

/* Ends all clients: the answer is wrong. */
__attribute__((noreturn, format(printf, 1, 2))) static inline void fm_client_fail(
    const char *format, ...) {
  va_list words;
  va_start(words, format);
  if (fm_says_why()) {
    fprintf(stderr, "%s: client %d: ", fm_client.program, fm_client.number);
    vfprintf(stderr, format, words);
    fputc('\n', stderr);
  }
  va_end(words);
  fm_leave(FM_FAILED);
}

/* Ends all clients: the file system refused it. `what`: such as "create a file". Of ranks the exit
 * code and lines of several are mixed by mpirun, so that it is one of their lines that says it. */
__attribute__((noreturn)) static inline void fm_refused(const char *what, int error) {
#ifdef FLOWOS_MPI
  fm_client_fail("cannot %s: %s", what, strerror(error));
#else
  const int is_full = error == ENOSPC || error == EDQUOT;
  const int is_closed = error == EROFS || error == EACCES || error == EPERM;
  if (fm_says_why())
    printf("{\"cannot\": \"client %d cannot %s: %s\", \"remedy\": \"%s%s\"}\n", fm_client.number,
           what, strerror(error), is_full ? "free some space, or " : "",
           is_full || is_closed ? "choose another folder with --scratch" : "");
  fm_leave(FM_CANNOT);
#endif
}

/* --- what clients do together --------------------------------------------------------------- */

static inline void fm_together(struct fm_part mine, struct fm_phase *phase) {
  fm_gather(mine, phase->parts);
  double first = phase->parts[0].start, last = phase->parts[0].end;
  phase->done = 0;
  for (int i = 0; i < fm_client.count; i++) {
    const struct fm_part *const part = phase->parts + i;
    if (part->start < first) first = part->start;
    if (part->end > last) last = part->end;
    phase->done += part->done;
  }
  phase->seconds = last - first;
}

/* The client whose files this one takes in a phase that comes so many after that in which they were
 * made: of another node where there are some, and never its own if there are others. */
static inline int fm_other(int phases, int stride) {
  const int count = fm_client.count, shift = (int)((long)phases * stride % count);
  return (fm_client.number + (shift ? shift : stride % count)) % count;
}

/* A new folder within this one, which all clients see, with `path` as its name. */
static inline void fm_make_folder(const char *within, const char *name, char *path) {
  if (fm_client.number == 0) {
    if (snprintf(path, FM_PATH_BYTES / 2, "%s/%s-XXXXXX", within, name) >= FM_PATH_BYTES / 2)
      fm_client_fail("too long a path");
    if (!mkdtemp(path)) fm_refused("make a folder", errno);
  }
#ifdef FLOWOS_MPI
  MPI_Bcast(path, FM_PATH_BYTES / 2, MPI_CHAR, 0, MPI_COMM_WORLD);
  struct stat there;
  if (stat(path, &there)) fm_client_fail("the folder of client 0 is not seen here: %s", path);
#endif
}

/* An option of a program: a number, or a word, which may have to be one of two. */
struct fm_option {
  const char *name;
  double *number;
  const char **word;
  const char *choices[2];
};

static inline int fm_option_fits(const struct fm_option *option, const char *value) {
  if (option->number) {
    char *end;
    *option->number = strtod(value, &end);
    return end != value && *end == '\0';
  }
  *option->word = value;
  return !option->choices[0] || !strcmp(value, option->choices[0]) ||
         !strcmp(value, option->choices[1]);
}

/* Reads the words of a command line, or ends the program: it was called wrongly. */
static inline void fm_read_options(const struct fm_option *options, int count, int words_count,
                                   char **words) {
  for (int i = 1; i < words_count; i += 2) {
    const char *const value = i + 1 < words_count ? words[i + 1] : "";
    int at = 0;
    while (at < count && strcmp(words[i], options[at].name) != 0) at++;
    if (at == count || !fm_option_fits(options + at, value))
      fm_fail("%s: %s: there is no such option, or not with this value", fm_client.program,
              words[i]);
  }
}

/* Is it a whole number from `least` to `most`? */
static inline int fm_is_whole(double number, double least, double most) {
  return number >= least && number <= most && number == (double)(int64_t)number;
}

typedef void fm_work(void *shared);

#ifdef FLOWOS_MPI

/* Runs work(shared) in each rank, after `prepare`. Returns the exit code. */
static inline int fm_clients_run(int count, fm_work *prepare, fm_work *work, void *shared) {
  MPI_Comm_rank(MPI_COMM_WORLD, &fm_client.number);
  MPI_Comm_size(MPI_COMM_WORLD, &fm_client.count);
  if (fm_client.count != count)
    fm_client_fail("%d rank(s), not %d: was it started by the mpirun of another MPI?",
                   fm_client.count, count);
  prepare(shared);
  work(shared);
  MPI_Finalize();
  return FM_OK;
}

#else

/* In a new process: client `number`. It ends with the one that started it. */
__attribute__((noreturn)) static inline void fm_client_starts(int number, pid_t parent,
                                                              fm_work *work, void *shared) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(FM_FAILED);
  fm_client.number = number;
  work(shared);
  exit(FM_OK);
}

static inline void fm_end_all(const pid_t *clients, int count) {
  for (int i = 0; i < count; i++)
    if (clients[i] > 0) kill(clients[i], SIGKILL);
  while (waitpid(-1, NULL, 0) > 0 || errno == EINTR) continue;
}

static inline int fm_exit_code(const pid_t *clients, int count, pid_t ended, int status) {
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  int number = 0;
  while (number < count && clients[number] != ended) number++;
  if (fm_says_why())
    fprintf(stderr, "%s: client %d was ended by: %s\n", fm_client.program, number,
            strsignal(WTERMSIG(status)));
  return FM_FAILED;
}

static inline void fm_start_all(pid_t *clients, int count, fm_work *work, void *shared) {
  const pid_t parent = getpid();
  for (int i = 0; i < count; i++) {
    clients[i] = fork();
    if (clients[i] == 0) fm_client_starts(i, parent, work, shared);
    if (clients[i] > 0) continue;
    const int error = errno;
    fm_end_all(clients, i);
    fm_refused("be started", error);
  }
}

/* Runs work(shared) in so many processes, after `prepare` in this one. Returns the exit code: that
 * of the first client that failed, which ends the others. */
static inline int fm_clients_run(int count, fm_work *prepare, fm_work *work, void *shared) {
  static pid_t clients[FM_MAX_CLIENTS];
  fm_board =
      mmap(NULL, sizeof *fm_board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (fm_board == MAP_FAILED) fm_fail("%s: no memory for %d clients", fm_client.program, count);
  fm_client.count = count;
  prepare(shared);
  fm_start_all(clients, count, work, shared);
  int status = 0, code = FM_OK;
  for (int left = count; left > 0 && code == FM_OK; left--) {
    const pid_t ended = waitpid(-1, &status, 0);
    if (ended < 0) fm_fail("%s: its clients are gone", fm_client.program);
    code = fm_exit_code(clients, count, ended, status);
    for (int i = 0; i < count; i++)
      if (clients[i] == ended) clients[i] = 0;
  }
  if (code != FM_OK) fm_end_all(clients, count);
  return code;
}

#endif

#endif
