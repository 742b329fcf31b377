/* Linpack: a dense system solved by LU with partial pivoting, as HPL states and checks it.
 *
 *   hpl --library FILE --symbol {}_ --family openblas|blis|mkl|other --cpus 0,1
 *       [--sizes 1000,2000,4000] [--seconds 3]
 *
 * The library's LAPACK (dgetrf, dgetrs), or, where it has none, recursive LU (Toledo, 1997) by its
 * dgemm and dtrsm. A and b are those of HPL: its generator, seed 100, column by column, b last.
 * Readings per n: flops in flop/s, by (2/3 n^3 + 3/2 n^2) / time, and time. Each solution is
 * checked by HPL's scaled residual, ||Ax-b|| / (eps (||A|| ||x|| + ||b||) n) < 16 in the infinity
 * norm, with A generated anew. Sizes that would take longer than what is left, or more memory than
 * is free, are left out. */
#define _GNU_SOURCE
#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

#include "flowos_blas.h"

enum { MAX_SIZES = 32, MAX_REPETITIONS = 9, WARM_N = 256 };
static const double THRESHOLD = 16, EPSILON = 0x1p-53;
static const uint64_t FACTOR = 6364136223846793005u, STEP = 1, SEED = 100;

/* Integers as in gemm.c: 8 bytes with the value in the lower 4. */
typedef int64_t integer;
typedef void getrf_function(const integer *m, const integer *n, double *a, const integer *lda,
                            integer *pivots, integer *info);
typedef void getrs_function(const char *, const integer *n, const integer *right, const double *a,
                            const integer *lda, const integer *pivots, double *b,
                            const integer *ldb, integer *info, size_t);
typedef void gemm_function(const char *, const char *, const integer *, const integer *,
                           const integer *, const double *, const double *, const integer *,
                           const double *, const integer *, const double *, double *,
                           const integer *, size_t, size_t);
typedef void trsm_function(const char *, const char *, const char *, const char *, const integer *,
                           const integer *, const double *, const double *, const integer *,
                           double *, const integer *, size_t, size_t, size_t, size_t);

struct lapack {
  getrf_function *getrf;
  getrs_function *getrs;
  gemm_function *gemm;
  trsm_function *trsm;
};

/* n x n in columns, then b, which becomes x. sums: |rows| of A, then A x, of each thread. */
struct problem {
  integer n;
  double *a;
  integer *pivots;
  double *sums;
  const struct fm_blas *blas;
  struct lapack lapack;
};

/* The state after so many steps of the generator, from `state` on. */
static uint64_t jump(uint64_t state, uint64_t steps) {
  uint64_t factor = FACTOR, step = STEP;
  for (; steps; steps >>= 1, step *= factor + 1, factor *= factor)
    if (steps & 1) state = state * factor + step;
  return state;
}

static double value_of(uint64_t state) { return 0.5 - (double)state * 0x1p-64; }

/* The part of columns 0..count that a thread has: adjacent ones, so that its memory is near. */
static integer from(int member, int members, integer count) { return count * member / members; }

static void generate(int member, void *shared) {
  const struct problem *problem = shared;
  const integer n = problem->n, last = from(member + 1, problem->blas->threads, n + 1);
  for (integer j = from(member, problem->blas->threads, n + 1); j < last; j++) {
    uint64_t state = jump(SEED, (uint64_t)(j * n + 1));
    for (integer i = 0; i < n; i++, state = state * FACTOR + STEP)
      problem->a[j * n + i] = value_of(state);
  }
}

/* Adds up |a| and a x of each row, over the thread's columns. */
static void sum_rows(int member, void *shared) {
  const struct problem *problem = shared;
  const integer n = problem->n, last = from(member + 1, problem->blas->threads, n);
  double *sums = problem->sums + 2 * n * member, *products = sums + n;
  memset(sums, 0, 2 * (size_t)n * sizeof *sums);
  for (integer j = from(member, problem->blas->threads, n); j < last; j++) {
    uint64_t state = jump(SEED, (uint64_t)(j * n + 1));
    const double x = problem->a[n * n + j];
    for (integer i = 0; i < n; i++, state = state * FACTOR + STEP) {
      const double a = value_of(state);
      sums[i] += fabs(a);
      products[i] += a * x;
    }
  }
}

/* HPL's scaled residual of the x that stands in place of b. */
static double residual_of(struct problem *problem) {
  const integer n = problem->n;
  const int threads = problem->blas->threads;
  double error = 0, norm_a = 0, norm_x = 0, norm_b = 0;
  uint64_t state = jump(SEED, (uint64_t)(n * n + 1));
  fm_on_each_cpu(problem->blas->cpus, threads, sum_rows, problem);
  for (integer i = 0; i < n; i++, state = state * FACTOR + STEP) {
    const double b = value_of(state), x = problem->a[n * n + i];
    double row = 0, product = 0;
    for (int t = 0; t < threads; t++) {
      row += problem->sums[2 * n * t + i];
      product += problem->sums[2 * n * t + n + i];
    }
    if (!(fabs(product - b) <= error)) error = fabs(product - b); /* not a number stays */
    if (row > norm_a) norm_a = row;
    if (fabs(x) > norm_x) norm_x = fabs(x);
    if (fabs(b) > norm_b) norm_b = fabs(b);
  }
  return error / (EPSILON * (norm_a * norm_x + norm_b) * (double)n);
}

/* Swaps rows i and pivots[i] of some columns. */
static void swap_rows(double *a, integer lda, integer columns, integer rows,
                      const integer *pivots) {
  for (integer j = 0; j < columns; j++)
    for (integer i = 0; i < rows; i++) {
      const double kept = a[j * lda + i];
      a[j * lda + i] = a[j * lda + pivots[i]];
      a[j * lda + pivots[i]] = kept;
    }
}

/* The pivot of one column, and the column over it. Returns 0 if the matrix is singular. */
static int factor_column(double *a, integer m, integer *pivot) {
  *pivot = 0;
  for (integer i = 1; i < m; i++)
    if (fabs(a[i]) > fabs(a[*pivot])) *pivot = i;
  const double by = a[*pivot];
  a[*pivot] = a[0];
  a[0] = by;
  for (integer i = 1; i < m; i++) a[i] /= by;
  return by != 0;
}

/* P A = L U of an m x n panel: its left half, what that leaves of the right one, the right one. */
static int factor(const struct lapack *by, double *a, integer lda, integer m, integer n,
                  integer *pivots) {
  if (n == 1) return factor_column(a, m, pivots);
  static const double one = 1, minus = -1;
  const integer left = n / 2, right = n - left, below = m - left;
  double *corner = a + left * lda;
  if (!factor(by, a, lda, m, left, pivots)) return 0;
  swap_rows(corner, lda, right, left, pivots);
  by->trsm("L", "L", "N", "U", &left, &right, &one, a, &lda, corner, &lda, 1, 1, 1, 1);
  by->gemm("N", "N", &below, &right, &left, &minus, a + left, &lda, corner, &lda, &one,
           corner + left, &lda, 1, 1);
  if (!factor(by, corner + left, lda, below, right, pivots + left)) return 0;
  swap_rows(a + left, lda, left, right, pivots + left);
  for (integer i = left; i < n; i++) pivots[i] += left;
  return 1;
}

static int solve_by_blas(const struct problem *problem) {
  static const integer column = 1;
  static const double one = 1;
  const struct lapack *by = &problem->lapack;
  const integer n = problem->n;
  double *b = problem->a + n * n;
  if (!factor(by, problem->a, n, n, n, problem->pivots)) return 0;
  swap_rows(b, n, 1, n, problem->pivots);
  by->trsm("L", "L", "N", "U", &n, &column, &one, problem->a, &n, b, &n, 1, 1, 1, 1);
  by->trsm("L", "U", "N", "N", &n, &column, &one, problem->a, &n, b, &n, 1, 1, 1, 1);
  return 1;
}

static int solve_by_lapack(const struct problem *problem) {
  static const integer column = 1;
  const integer n = problem->n;
  integer info = 0;
  problem->lapack.getrf(&n, &n, problem->a, &n, problem->pivots, &info);
  if ((int32_t)info) return 0;
  problem->lapack.getrs("N", &n, &column, problem->a, &n, problem->pivots, problem->a + n * n, &n,
                        &info, 1);
  return !(int32_t)info;
}

/* Seconds to solve once. Ends the program if the solution is wrong. */
static double solve_once(struct problem *problem, double *residual) {
  fm_on_each_cpu(problem->blas->cpus, problem->blas->threads, generate, problem);
  const double start = fm_seconds();
  const int solved = problem->lapack.getrf ? solve_by_lapack(problem) : solve_by_blas(problem);
  const double took = fm_seconds() - start;
  if (!solved) fm_fail("n %ld: the library says that the matrix is singular", (long)problem->n);
  *residual = residual_of(problem);
  if (!(*residual < THRESHOLD))
    fm_fail("n %ld: wrong solution, its scaled residual is %g and not below %g", (long)problem->n,
            *residual, THRESHOLD);
  return took;
}

/* Is there memory for n now, with some left? True where Linux does not say. */
static int fits(integer n) {
  long kib = 0;
  char line[200];
  FILE *file = fopen("/proc/meminfo", "re");
  while (file && fgets(line, sizeof line, file) && sscanf(line, "MemAvailable: %ld", &kib) != 1) {
  }
  if (file) fclose(file);
  return !kib || (double)n * (double)n * 8 < 0.95 * 1024 * (double)kib;
}

static void *memory(size_t bytes) {
  void *room = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) fm_cannot("not enough memory for the largest matrix", "ask for less");
  madvise(room, bytes, MADV_HUGEPAGE);
  return room;
}

static double operations(integer n) {
  const double size = (double)n;
  return size * size * (2.0 / 3.0 * size + 1.5);
}

static int printed;

/* Three times, more while it takes little; once where it takes long. */
static void measure_size(struct problem *problem, double left, double *rate, const char *notes) {
  double rates[MAX_REPETITIONS], times[MAX_REPETITIONS], residual, worst = 0, begin = fm_seconds();
  char levels[100], all[600];
  int count = 0;
  do {
    times[count] = solve_once(problem, &residual);
    rates[count] = operations(problem->n) / times[count];
    if (residual > worst) worst = residual;
    count++;
  } while (count < MAX_REPETITIONS &&
           (fm_seconds() - begin) * (count + 1) / count < left / (count < 3 ? 3 : 8));
  *rate = rates[count - 1];
  snprintf(levels, sizeof levels, "\"n\": \"%ld\"", (long)problem->n);
  snprintf(all, sizeof all, "%s, \"residual\": \"%.3g\"", notes, worst);
  fm_reading(!printed, "flops", "flop/s", rates, count, levels, all);
  fm_reading(0, "time", "second", times, count, levels, all);
  fflush(stdout);
  printed = 1;
}

/* The library's functions; LAPACK's two are NULL where it lacks one of them. */
static struct lapack find_lapack(const struct fm_blas *blas, void *library) {
  const struct lapack found = {(getrf_function *)fm_fortran(blas, library, "dgetrf"),
                               (getrs_function *)fm_fortran(blas, library, "dgetrs"),
                               (gemm_function *)fm_fortran(blas, library, "dgemm"),
                               (trsm_function *)fm_fortran(blas, library, "dtrsm")};
  if (found.getrf && found.getrs) return found;
  if (!found.gemm || !found.trsm) fm_cannot("the library has neither LAPACK nor dgemm, dtrsm", "");
  return (struct lapack){NULL, NULL, found.gemm, found.trsm};
}

static void measure(struct problem *problem, const integer *sizes, int count, double seconds,
                    const char *notes) {
  const double until = fm_seconds() + seconds;
  const size_t threads = (size_t)problem->blas->threads;
  double rate = 0, residual;
  integer most = WARM_N;
  for (int i = 0; i < count; i++)
    if (sizes[i] > most && fits(sizes[i])) most = sizes[i];
  problem->a = memory((size_t)(most * (most + 1)) * sizeof *problem->a);
  problem->pivots = memory((size_t)most * sizeof *problem->pivots);
  problem->sums = memory(2 * (size_t)most * threads * sizeof *problem->sums);
  problem->n = WARM_N;
  solve_once(problem, &residual); /* starts the library's threads */
  fm_spread_threads(problem->blas);
  for (int i = 0; i < count; i++) {
    problem->n = sizes[i];
    const double left = until - fm_seconds();
    const int in_time = rate == 0 || operations(sizes[i]) / rate < left;
    if (sizes[i] <= most && in_time) measure_size(problem, left, &rate, notes);
  }
}

int main(int count, char **words) {
  static struct fm_blas blas = {.symbol = "{}_", .family = "other"};
  static integer sizes[MAX_SIZES];
  char notes[400], whole[500];
  double seconds = 3;
  int size_count = fm_parse_sizes("1000,2000,4000", sizes, MAX_SIZES);
  for (int i = 1; i + 1 < count; i += 2) {
    fm_blas_option(&blas, words[i], words[i + 1]);
    if (!strcmp(words[i], "--sizes")) size_count = fm_parse_sizes(words[i + 1], sizes, MAX_SIZES);
    if (!strcmp(words[i], "--seconds")) seconds = atof(words[i + 1]);
  }
  if (!fm_blas_is_asked(&blas))
    fm_fail("usage: hpl --library FILE --symbol {}_ --cpus LIST [--sizes LIST] [--seconds S]");
  fm_keep_on(0, blas.cpus, blas.threads);
  void *library = fm_open_blas(&blas);
  fm_set_threads(library, blas.threads);
  struct problem problem = {.blas = &blas, .lapack = find_lapack(&blas, library)};
  fm_describe_blas(&blas, library, notes, sizeof notes);
  snprintf(whole, sizeof whole, "%s, \"factored_by\": \"%s\"", notes,
           problem.lapack.getrf ? "dgetrf" : "recursive LU, dgemm");
  measure(&problem, sizes, size_count, seconds, whole);
  if (!printed)
    fm_cannot("no size fits into the memory that is free", "free memory, or ask for less");
  fm_end();
  fflush(stdout);
  _exit(FM_OK); /* some libraries hang at exit once their threads are gone */
}
