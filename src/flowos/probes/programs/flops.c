/* The maximum rate of floating-point operations of this machine, per instruction set.
 *
 *   flops --cpus 0,1 [--repetitions 9] [--seconds 0.008]
 *
 * One thread on each cpu runs kernels that touch registers only, all threads at once. Readings per
 * instruction set and type (f32, f64, bf16): flops in flop/s of all threads together, for the best
 * order of multiplies and adds; the notes name it, and how many operations a core did per cycle.
 * For i8: ops in op/s. A multiplication and an addition are two in all types. */
#include "flops_dot.h"
#include "flowos_clock.h"
/* After these, which define _GNU_SOURCE. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__x86_64__)
#include "flops_x86.h"
#else
#include "flops_arm.h"
#endif

enum {
  KERNELS = sizeof kernels / sizeof kernels[0],
  MAX_REPETITIONS = 100,
  MIN_ROUNDS = 128 /* 0.7 to this power is below a double's last bit */
};

struct run {
  int members, repetitions;
  double burst_seconds;
  pthread_barrier_t barrier;
  long rounds[KERNELS];                    /* of a burst */
  double *start, *end;                     /* per member, of the burst under way */
  double rate[KERNELS][MAX_REPETITIONS];   /* flop/s of all members together */
  double cycles[KERNELS][MAX_REPETITIONS]; /* per second, of the first member after a burst */
};

static double element(const struct kernel *kernel, const union registers *from, int index) {
  return kernel->element_bytes == 4 ? (double)from->f32[index] : from->f64[index];
}

/* Full mantissas, as real data have: constants in 0.3..0.7, so that x * m + a stays near 1. */
static void fill_reals(const struct kernel *kernel, union registers *in) {
  uint64_t state = 88172645463325252u;
  const int lanes = kernel->vector_bytes() / kernel->element_bytes;
  for (int i = 0; i < (kernel->chains + kernel->constants) * lanes; i++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const double value = 0.3 + 0.4 * (double)(state >> 11) / 9007199254740992.0;
    if (kernel->element_bytes == 4)
      in->f32[i] = (float)value;
    else
      in->f64[i] = value;
  }
}

/* Ends the program unless each chain has the value expected after so many steps. */
static void check_reals(const struct kernel *kernel, const union registers *in,
                        const union registers *out) {
  const int lanes = kernel->vector_bytes() / kernel->element_bytes;
  const double tolerance = kernel->element_bytes == 4 ? 1e-5 : 1e-13;
  for (int i = 0; i < kernel->chains * lanes; i++) {
    const int chain = i / lanes, half = kernel->constants / 2;
    const int at = (kernel->chains + chain % half) * lanes + i % lanes;
    const double m = element(kernel, in, at), a = element(kernel, in, at + half * lanes);
    const double right = kernel->steps == CONVERGES ? a / (1 - m) : element(kernel, in, i) + m * a;
    const double error = element(kernel, out, i) / right - 1;
    if (!(error < tolerance && error > -tolerance))
      fm_fail("%s, %s: chain %d ended at %.17g, not at %.17g", kernel->isa, kernel->mix, chain,
              element(kernel, out, i), right);
  }
}

static void fill(const struct kernel *kernel, union registers *in) {
  if (is_dot(kernel))
    fill_dots(kernel, in);
  else
    fill_reals(kernel, in);
}

static void check(const struct kernel *kernel, const union registers *in,
                  const union registers *out) {
  if (is_dot(kernel))
    check_dots(kernel, in, out);
  else
    check_reals(kernel, in, out);
}

/* Of the kernels for narrow numbers: why one is not used, "" if it is. */
static char why_not[KERNELS][100];
/* Notes on instruction sets of which none is. */
static char refused[1000];

static int works(int k) { return !*why_not[k] && kernels[k].vector_bytes(); }

static void refuse(const char *isa, const char *why) {
  const size_t used = strlen(refused);
  snprintf(refused + used, sizeof refused - used, ", \"refused %.40s\": \"%.90s\"", isa, why);
}

/* Does another kernel of this set work, or is one before it refused too? */
static int is_settled(int k) {
  for (int other = 0; other < KERNELS; other++)
    if (!strcmp(kernels[other].isa, kernels[k].isa) &&
        (works(other) || (other < k && *why_not[other])))
      return 1;
  return 0;
}

/* In a child: what an emulator or a hypervisor does wrong costs no other kernel its numbers. */
static const char *failure_of(const struct kernel *kernel) {
  static union registers in, out;
  int status = 0;
  const pid_t child = fork();
  if (child == 0) {
    fill_dots(kernel, &in);
    kernel->run(MIN_ROUNDS, &in, &out);
    check_dots(kernel, &in, &out);
    _exit(0);
  }
  if (child < 0 || waitpid(child, &status, 0) < 0) return strerror(errno);
  if (WIFSIGNALED(status)) return strsignal(WTERMSIG(status));
  return status ? "its sums are wrong" : "";
}

static void try_dots(void) {
  const char *tiles = refusal();
  signal(SIGCHLD, SIG_DFL); /* ignored, children would leave no status */
  if (*tiles) refuse("amx_int8, amx_bf16", tiles);
  for (int k = 0; k < KERNELS; k++)
    if (is_dot(&kernels[k]) && kernels[k].vector_bytes())
      snprintf(why_not[k], sizeof why_not[k], "%s", failure_of(&kernels[k]));
  for (int k = 0; k < KERNELS; k++)
    if (*why_not[k] && !is_settled(k)) refuse(kernels[k].isa, why_not[k]);
}

/* Of a burst: enough for every chain to converge, also where another program took the processor
 * while the rounds were timed. */
static long rounds_for(const struct kernel *kernel, double seconds, const void *in, void *out) {
  long rounds = 1000;
  for (;; rounds *= 4) {
    const double start = fm_seconds();
    kernel->run(rounds, in, out);
    const double took = fm_seconds() - start;
    if (took > 0.25 * seconds) {
      const long in_time = (long)((double)rounds * seconds / took);
      return in_time > MIN_ROUNDS ? in_time : MIN_ROUNDS;
    }
  }
}

static double flop_of_round(const struct kernel *kernel) {
  const int elements = kernel->vector_bytes() / kernel->element_bytes;
  return 2.0 * kernel->passes * kernel->chains * elements * rows_of(kernel);
}

/* After a burst: the rate of all, over the time from the first start to the last end. */
static void keep(struct run *run, int k, int repetition) {
  double start = run->start[0], end = run->end[0];
  for (int i = 1; i < run->members; i++) {
    if (run->start[i] < start) start = run->start[i];
    if (run->end[i] > end) end = run->end[i];
  }
  const double flop = flop_of_round(&kernels[k]) * (double)run->rounds[k] * run->members;
  run->rate[k][repetition] = flop / (end - start);
  run->cycles[k][repetition] = fm_dependent_adds_per_second(1000000);
}

static void burst(struct run *run, int member, int k, int repetition) {
  static _Thread_local union registers in, out;
  const struct kernel *kernel = &kernels[k];
  fill(kernel, &in);
  if (member == 0 && !run->rounds[k])
    run->rounds[k] = rounds_for(kernel, run->burst_seconds, &in, &out);
  pthread_barrier_wait(&run->barrier);
  kernel->run(run->rounds[k] / 8 + 1, &in, &out); /* wide units need some time to wake up */
  pthread_barrier_wait(&run->barrier);
  run->start[member] = fm_seconds();
  kernel->run(run->rounds[k], &in, &out);
  run->end[member] = fm_seconds();
  check(kernel, &in, &out);
  pthread_barrier_wait(&run->barrier);
  if (member == 0) keep(run, k, repetition);
}

static void measure(int member, void *shared) {
  struct run *run = shared;
  fm_dependent_adds_per_second(100000000);
  for (int repetition = 0; repetition < run->repetitions; repetition++)
    for (int k = 0; k < KERNELS; k++)
      if (works(k)) burst(run, member, k, repetition);
}

static double best(const double *values, int count) {
  double most = values[0];
  for (int i = 1; i < count; i++)
    if (values[i] > most) most = values[i];
  return most;
}

/* Is there a better order than this one for the same instruction set and type? */
static int beaten(const struct run *run, int k) {
  for (int other = 0; other < KERNELS; other++)
    if (!strcmp(kernels[other].isa, kernels[k].isa) &&
        kernels[other].element_bytes == kernels[k].element_bytes &&
        best(run->rate[other], run->repetitions) > best(run->rate[k], run->repetitions))
      return 1;
  return 0;
}

static const char *type_of(const struct kernel *kernel) {
  if (kernel->element_bytes <= 2) return kernel->element_bytes == 1 ? "i8" : "bf16";
  return kernel->element_bytes == 4 ? "f32" : "f64";
}

static void print(const struct run *run) {
  int first = 1;
  for (int k = 0; k < KERNELS; k++) {
    const struct kernel *kernel = &kernels[k];
    const int integers = kernel->element_bytes == 1;
    char levels[100], notes[1400];
    if (!works(k) || beaten(run, k)) continue;
    const double rate = best(run->rate[k], run->repetitions);
    snprintf(levels, sizeof levels, "\"isa\": \"%s\", \"type\": \"%s\"", kernel->isa,
             type_of(kernel));
    snprintf(notes, sizeof notes, "\"kernel\": \"%s\", \"vector_bits\": \"%d\", \"%s\": \"%.1f\"%s",
             kernel->mix, 8 * kernel->vector_bytes(), integers ? "op_per_cycle" : "flop_per_cycle",
             rate / run->members / best(run->cycles[k], run->repetitions), refused);
    fm_reading(first, integers ? "ops" : "flops", integers ? "op/s" : "flop/s", run->rate[k],
               run->repetitions, levels, notes);
    first = 0;
  }
  if (first) fm_cannot("no vector instruction set that flops.c knows (SSE4.2 and up, NEON)", "");
  fm_end();
}

int main(int count, char **words) {
  static int cpus[FM_MAX_CPUS];
  static struct run run = {.repetitions = 9, .burst_seconds = 0.008};
  for (int i = 1; i + 1 < count; i += 2) {
    if (!strcmp(words[i], "--cpus")) run.members = fm_parse_cpus(words[i + 1], cpus);
    if (!strcmp(words[i], "--repetitions")) run.repetitions = atoi(words[i + 1]);
    if (!strcmp(words[i], "--seconds")) run.burst_seconds = atof(words[i + 1]);
  }
  if (!run.members || run.repetitions < 1 || run.repetitions > MAX_REPETITIONS ||
      !(run.burst_seconds > 0 && run.burst_seconds <= 1))
    fm_fail("usage: flops --cpus LIST [--repetitions 1..%d] [--seconds 0..1]", MAX_REPETITIONS);
  run.start = calloc((size_t)run.members, sizeof *run.start);
  run.end = calloc((size_t)run.members, sizeof *run.end);
  if (!run.start || !run.end) fm_fail("no memory for %d threads", run.members);
  try_dots();
  pthread_barrier_init(&run.barrier, NULL, (unsigned)run.members);
  fm_on_each_cpu(cpus, run.members, measure, &run);
  print(&run);
  return FM_OK;
}
