/* Matrix products by a BLAS library that is opened at run time: how fast, with which kernel?
 *
 *   gemm --library FILE --symbol {}_ --family openblas|blis|mkl|other --cpus 0,1
 *        [--core SkylakeX] [--sizes 128,1000,4096] [--seconds 3] [--least 0.02]
 *
 * C = A B with square, column-major, random matrices, f64 and f32. --core forces the library's
 * kernels; a wrong one may end the program by SIGILL. Readings per type and n: flops in flop/s.
 * Sizes that would take longer than what is left of --seconds are left out, and named. Each
 * product is checked by Freivalds' method (1977): C x = A (B x) for a random vector x of +-1. */
#define _GNU_SOURCE
#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

#include "flowos_blas.h"

enum { WARM_N = 256, MAX_SIZES = 64, MAX_REPETITIONS = 50 };

/* Integers are 8 bytes with the value in the lower 4: right for libraries of both kinds, on the
 * little-endian machines that flowos_clock.h knows. The last two are the lengths of strings. */
typedef void gemm_function(const char *, const char *, const int64_t *, const int64_t *,
                           const int64_t *, const void *, const void *, const int64_t *,
                           const void *, const int64_t *, const void *, void *, const int64_t *,
                           size_t, size_t);

struct asked {
  struct fm_blas blas;
  int64_t sizes[MAX_SIZES];
  int size_count;
  double seconds, least;
};

struct type {
  const char *name, *blas;
  int bytes;
  double rounding;
  gemm_function *multiply;
  double rate; /* of the size before */
};

static double get(const struct type *type, const void *matrix, int64_t at) {
  return type->bytes == 8 ? ((const double *)matrix)[at] : (double)((const float *)matrix)[at];
}

static uint64_t next(uint64_t *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return *state >> 11;
}

/* Random values in -0.5..0.5, from element `from` up to `to`. */
static void fill(const struct type *type, void *matrix, int64_t from, int64_t to) {
  uint64_t state = (uint64_t)(uintptr_t)matrix + (uint64_t)from;
  for (int64_t i = from; i < to; i++) {
    const double value = (double)next(&state) / 9007199254740992.0 - 0.5;
    if (type->bytes == 8)
      ((double *)matrix)[i] = value;
    else
      ((float *)matrix)[i] = (float)value;
  }
}

/* y = matrix x */
static void apply(const struct type *type, const void *matrix, int64_t n, const double *x,
                  double *y) {
  memset(y, 0, (size_t)n * sizeof *y);
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < n; i++) y[i] += get(type, matrix, i + j * n) * x[j];
}

/* Ends the program unless C = A B. An error in one element is about as large as that element,
 * sqrt(n)/12; rounding adds up to about n * rounding. */
static void check(const struct type *type, int64_t n, void *const *matrices) {
  double *x = malloc(4 * (size_t)n * sizeof *x), *bx = x + n, *abx = bx + n, *cx = abx + n;
  uint64_t state = 1;
  if (!x) fm_fail("no memory for the check");
  for (int64_t i = 0; i < n; i++) x[i] = next(&state) & 1 ? 1 : -1;
  apply(type, matrices[1], n, x, bx);
  apply(type, matrices[0], n, bx, abx);
  apply(type, matrices[2], n, x, cx);
  for (int64_t i = 0; i < n; i++)
    if (!(fabs(cx[i] - abx[i]) <= 50 * (double)n * type->rounding))
      fm_fail("wrong product: %s, n %ld, row %ld off by %g", type->name, (long)n, (long)i,
              cx[i] - abx[i]);
  free(x);
}

static double multiply_once(const struct type *type, int64_t n, void *const *matrices) {
  static const double one = 1, zero = 0;
  static const float one_f = 1, zero_f = 0;
  const void *alpha = type->bytes == 8 ? (const void *)&one : &one_f;
  const void *beta = type->bytes == 8 ? (const void *)&zero : &zero_f;
  const double start = fm_seconds();
  type->multiply("N", "N", &n, &n, &n, alpha, matrices[0], &n, matrices[1], &n, beta, matrices[2],
                 &n, 1, 1);
  return fm_seconds() - start;
}

/* Repeats until --least seconds and 3 repetitions, within a third of the time left. */
static int repeat(const struct asked *asked, struct type *type, int64_t n, void *const *matrices,
                  double left, double *rates) {
  const double flop = 2.0 * (double)n * (double)n * (double)n;
  double spent = 0, took = 0;
  int count = 0;
  if (n < 1000) multiply_once(type, n, matrices);
  do {
    took = multiply_once(type, n, matrices);
    spent += took;
    rates[count++] = flop / took;
  } while (count < MAX_REPETITIONS && spent + took < left / 3 &&
           (count < 3 || spent < asked->least));
  type->rate = flop / took;
  check(type, n, matrices);
  return count;
}

static void print(const struct type *type, int64_t n, const double *rates, int count,
                  const char *notes) {
  static int printed;
  char levels[100];
  snprintf(levels, sizeof levels, "\"type\": \"%s\", \"n\": \"%ld\"", type->name, (long)n);
  fm_reading(!printed, "flops", "flop/s", rates, count, levels, notes);
  fflush(stdout);
  printed = 1;
}

static void *room_for(int64_t elements) {
  const size_t bytes = (size_t)elements * 8;
  void *room = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED)
    fm_cannot("not enough memory for the largest matrices", "ask for smaller n");
  madvise(room, bytes, MADV_HUGEPAGE);
  return room;
}

static void measure_type(const struct asked *asked, struct type *type, void *const *matrices,
                         double until, const char *notes) {
  double rates[MAX_REPETITIONS];
  int64_t filled = 0;
  for (int i = 0; i < asked->size_count; i++) {
    const int64_t n = asked->sizes[i];
    const double flop = 2.0 * (double)n * (double)n * (double)n;
    if (type->rate > 0 && flop / type->rate > until - fm_seconds()) continue;
    for (int m = 0; m < 2; m++) fill(type, matrices[m], filled, n * n);
    fill(type, matrices[2], 0, n * n);
    if (n * n > filled) filled = n * n;
    const int count = repeat(asked, type, n, matrices, until - fm_seconds(), rates);
    print(type, n, rates, count, notes);
  }
}

/* f64 gets two thirds of the time, as f32 takes half as long. */
static void measure(const struct asked *asked, struct type *types, const char *notes) {
  const double start = fm_seconds();
  int64_t most = 0;
  for (int i = 0; i < asked->size_count; i++)
    if (asked->sizes[i] > most) most = asked->sizes[i];
  void *matrices[] = {room_for(most * most), room_for(most * most), room_for(most * most)};
  multiply_once(&types[0], most < WARM_N ? most : WARM_N, matrices); /* starts the threads */
  fm_spread_threads(&asked->blas);
  measure_type(asked, &types[0], matrices, start + asked->seconds * 2 / 3, notes);
  measure_type(asked, &types[1], matrices, start + asked->seconds, notes);
}

static void read_option(struct asked *asked, const char *name, const char *value) {
  fm_blas_option(&asked->blas, name, value);
  if (!strcmp(name, "--sizes")) asked->size_count = fm_parse_sizes(value, asked->sizes, MAX_SIZES);
  if (!strcmp(name, "--seconds")) asked->seconds = atof(value);
  if (!strcmp(name, "--least")) asked->least = atof(value);
}

static void read_words(struct asked *asked, int count, char **words) {
  for (int i = 1; i + 1 < count; i += 2) read_option(asked, words[i], words[i + 1]);
  if (!fm_blas_is_asked(&asked->blas))
    fm_fail(
        "usage: gemm --library FILE --symbol {}_ --family NAME --cpus LIST"
        " [--core NAME] [--sizes LIST] [--seconds S] [--least S]");
}

static void find_gemm(struct type *type, void *library, const struct fm_blas *blas) {
  type->multiply = (gemm_function *)fm_fortran(blas, library, type->blas);
  if (!type->multiply) fm_cannot("the library lacks the function asked for", "");
}

int main(int count, char **words) {
  static struct asked asked = {
      .blas = {.symbol = "{}_", .family = "other"}, .seconds = 3, .least = 0.02};
  struct type types[] = {{"f64", "dgemm", 8, 0x1p-53, NULL, 0},
                         {"f32", "sgemm", 4, 0x1p-24, NULL, 0}};
  char notes[400];
  const struct fm_blas *blas = &asked.blas;
  read_option(&asked, "--sizes", "128,256,384,512,768,1000,1024,1536,2000,2048,3072,4096");
  read_words(&asked, count, words);
  fm_keep_on(0, blas->cpus, blas->threads);
  void *library = fm_open_blas(blas);
  fm_set_threads(library, blas->threads);
  for (int t = 0; t < 2; t++) find_gemm(&types[t], library, blas);
  fm_describe_blas(blas, library, notes, sizeof notes);
  measure(&asked, types, notes);
  fm_end();
  fflush(stdout);
  _exit(FM_OK); /* some libraries hang at exit once their threads are gone */
}
