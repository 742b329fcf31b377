/* All-pairs gravity on processors: each thread sums the acceleration of its share of the bodies.
 *
 *   nbody --cpus 0-3 [--bodies 16384] [--type f32] [--repetitions 5] [--seconds 2]
 *
 * a_i = sum over j of m_j (x_j - x_i) / (|x_j - x_i|^2 + eps^2)^1.5, counted as 20 operations a
 * pair, as Nyland, Harris and Prins do (GPU Gems 3, chapter 31). No more repetitions begin after
 * --seconds. Some bodies are checked in f64. Reading: flops, in flop/s. */
#define _GNU_SOURCE
#include <math.h>

#include "flowos_clock.h"

enum { MAX_REPETITIONS = 100, AT_ONCE = 4, CHECKED = 16, PARTS = 7 };
enum { X, Y, Z, MASS, AX, AY, AZ };
static const double OPERATIONS = 20, SOFTENING = 0.01 * 0.01;

struct run {
  int members, repetitions, wide; /* wide: f64 */
  long bodies;
  void *part[PARTS];
};

static void put(const struct run *run, int part, long at, const void *sums, size_t size) {
  memcpy((char *)run->part[part] + (size_t)at * (size / AT_ONCE), sums, size);
}

/* Four bodies at once, so that each vector of sources is loaded for all of them. */
#define DEFINE_SUM(name, real, root)                                                   \
  static void name(const struct run *run, long first, long end) {                      \
    const real *x = run->part[X], *y = run->part[Y], *z = run->part[Z];                \
    const real *mass = run->part[MASS];                                                \
    for (long i = first; i < end; i += AT_ONCE) {                                      \
      real sx[AT_ONCE] = {0}, sy[AT_ONCE] = {0}, sz[AT_ONCE] = {0};                    \
      for (long j = 0; j < run->bodies; j++)                                           \
        for (int k = 0; k < AT_ONCE; k++) {                                            \
          const real dx = x[j] - x[i + k], dy = y[j] - y[i + k], dz = z[j] - z[i + k]; \
          const real square = dx * dx + dy * dy + dz * dz + (real)SOFTENING;           \
          const real inverse = 1 / root(square);                                       \
          const real weight = mass[j] * inverse * inverse * inverse;                   \
          sx[k] += weight * dx, sy[k] += weight * dy, sz[k] += weight * dz;            \
        }                                                                              \
      put(run, AX, i, sx, sizeof sx);                                                  \
      put(run, AY, i, sy, sizeof sy);                                                  \
      put(run, AZ, i, sz, sizeof sz);                                                  \
    }                                                                                  \
  }
DEFINE_SUM(sum_f32, float, sqrtf)
DEFINE_SUM(sum_f64, double, sqrt)

static void share(int member, void *shared) {
  const struct run *run = shared;
  const long blocks = run->bodies / AT_ONCE;
  const long first = blocks * member / run->members * AT_ONCE;
  const long end = blocks * (member + 1) / run->members * AT_ONCE;
  (run->wide ? sum_f64 : sum_f32)(run, first, end);
}

static double value(const struct run *run, int part, long at) {
  return run->wide ? ((const double *)run->part[part])[at] : ((const float *)run->part[part])[at];
}

static void make_bodies(struct run *run) {
  uint64_t state = 88172645463325252u; /* xorshift64* (Vigna 2016) */
  for (int part = X; part < PARTS; part++) {
    run->part[part] = calloc((size_t)run->bodies, sizeof(double));
    if (!run->part[part]) fm_cannot("not enough memory", "ask for fewer bodies");
    for (long i = 0; i < run->bodies; i++) {
      state ^= state >> 12, state ^= state << 25, state ^= state >> 27;
      const double drawn = (double)(state * 0x2545f4914f6cdd1du >> 11) / (double)(1L << 53);
      if (run->wide)
        ((double *)run->part[part])[i] = drawn;
      else
        ((float *)run->part[part])[i] = (float)drawn;
    }
  }
}

static void check(const struct run *run) {
  double wrong = 0, whole = 0;
  for (long i = 0; i < run->bodies; i += run->bodies / CHECKED + 1) {
    double true_sum[3] = {0};
    for (long j = 0; j < run->bodies; j++) {
      double d[3], square = SOFTENING;
      for (int axis = 0; axis < 3; axis++) {
        d[axis] = value(run, X + axis, j) - value(run, X + axis, i);
        square += d[axis] * d[axis];
      }
      for (int axis = 0; axis < 3; axis++)
        true_sum[axis] += value(run, MASS, j) * d[axis] / (square * sqrt(square));
    }
    for (int axis = 0; axis < 3; axis++) {
      const double off = value(run, AX + axis, i) - true_sum[axis];
      wrong += off * off, whole += true_sum[axis] * true_sum[axis];
    }
  }
  const double error = sqrt(wrong / whole);
  if (!(error < (run->wide ? 1e-11 : 1e-4))) fm_fail("accelerations are off by %.2g", error);
}

/* Each takes long: no more begin after so many seconds, but two at least. */
static void measure(struct run *run, const int *cpus, double seconds) {
  double rate[MAX_REPETITIONS];
  int done = 0;
  const double pairs = (double)run->bodies * (double)run->bodies, begin = fm_seconds();
  while (done < run->repetitions && (done < 2 || fm_seconds() - begin < seconds)) {
    const double start = fm_seconds();
    fm_on_each_cpu(cpus, run->members, share, run);
    rate[done++] = OPERATIONS * pairs / (fm_seconds() - start);
  }
  const char *levels = run->wide ? "\"type\": \"f64\"" : "\"type\": \"f32\"";
  fm_reading(1, "flops", "flop/s", rate, done, levels, "");
  fm_end();
}

int main(int count, char **words) {
  static int cpus[FM_MAX_CPUS];
  struct run run = {.repetitions = 5, .bodies = 16384};
  double seconds = 2;
  for (int i = 1; i + 1 < count; i += 2) {
    if (!strcmp(words[i], "--cpus")) run.members = fm_parse_cpus(words[i + 1], cpus);
    if (!strcmp(words[i], "--bodies")) run.bodies = atol(words[i + 1]);
    if (!strcmp(words[i], "--type")) run.wide = !strcmp(words[i + 1], "f64");
    if (!strcmp(words[i], "--repetitions")) run.repetitions = atoi(words[i + 1]);
    if (!strcmp(words[i], "--seconds")) seconds = atof(words[i + 1]);
  }
  if (!run.members || run.repetitions < 1 || run.repetitions > MAX_REPETITIONS ||
      run.bodies < AT_ONCE || run.bodies % AT_ONCE || run.bodies > 1L << 24)
    fm_fail("usage: nbody --cpus LIST [--bodies 4..2^24, a multiple of 4] [--repetitions 1..%d]",
            MAX_REPETITIONS);
  make_bodies(&run);
  fm_on_each_cpu(cpus, run.members, share, &run); /* warm-up */
  check(&run);
  measure(&run, cpus, seconds);
  return FM_OK;
}
