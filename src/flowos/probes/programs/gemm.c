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
#include <dirent.h>
#include <dlfcn.h>
#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

#include "flowos_clock.h"

enum { WARM_N = 256, MAX_SIZES = 64, MAX_REPETITIONS = 50, MAX_CORES = 64 };

/* Integers are 8 bytes with the value in the lower 4: right for libraries of both kinds, on the
 * little-endian machines that flowos_clock.h knows. The last two are the lengths of strings. */
typedef void gemm_function(const char *, const char *, const int64_t *, const int64_t *,
                           const int64_t *, const void *, const void *, const int64_t *,
                           const void *, const int64_t *, const void *, void *, const int64_t *,
                           size_t, size_t);

struct asked {
  const char *library, *symbol, *family, *core;
  int cpus[FM_MOST_CPUS], threads;
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

/* The library's function of this name, with the prefixes and suffixes that builds put around it. */
static void *find(void *library, const char *name) {
  static const char *const around[][2] = {{"", ""},       {"", "64_"},       {"", "_64_"},
                                          {"scipy_", ""}, {"scipy_", "64_"}, {"scipy_", "_64_"}};
  for (size_t i = 0; i < sizeof around / sizeof around[0]; i++) {
    char whole[200];
    snprintf(whole, sizeof whole, "%s%s%s", around[i][0], name, around[i][1]);
    void *found = dlsym(library, whole);
    if (found) return found;
  }
  return NULL;
}

/* dlsym gives data pointers; POSIX lets them be functions. */
#define FUNCTION(result, name, library, ...) \
  result (*name)(__VA_ARGS__) = (result(*)(__VA_ARGS__))find(library, #name)

static void set_threads(void *library, int threads) {
  FUNCTION(void, openblas_set_num_threads, library, int);
  FUNCTION(void, bli_thread_set_num_threads, library, int64_t);
  FUNCTION(void, MKL_Set_Num_Threads, library, int);
  if (openblas_set_num_threads) openblas_set_num_threads(threads);
  if (bli_thread_set_num_threads) bli_thread_set_num_threads(threads);
  if (MKL_Set_Num_Threads) MKL_Set_Num_Threads(threads);
}

/* BLIS 0.9 takes numbers only, and they differ between versions: ask for the name of each. */
static int blis_number(void *library, const char *core) {
  FUNCTION(const char *, bli_arch_string, library, int);
  for (int number = 0; bli_arch_string && number < MAX_CORES; number++) {
    const char *name = bli_arch_string(number);
    if (!strcmp(name, core)) return number;
    if (!strcmp(name, "generic")) break; /* the last one */
  }
  return -1;
}

/* The variable that forces the kernels of a library of this family. */
static const char *variable_of(const char *family) {
  if (!strcmp(family, "openblas")) return "OPENBLAS_CORETYPE";
  if (!strcmp(family, "blis")) return "BLIS_ARCH_TYPE";
  if (!strcmp(family, "mkl")) return "MKL_ENABLE_INSTRUCTIONS";
  return NULL;
}

/* Opens the library with the kernels asked for; OpenBLAS and MKL read the variable right then. */
static void *open_library(const struct asked *asked) {
  const char *variable = variable_of(asked->family);
  if (asked->core && !variable) fm_cannot("libraries of this family cannot be forced", "");
  if (asked->core) setenv(variable, asked->core, 1);
  void *library = dlopen(asked->library, RTLD_NOW | RTLD_GLOBAL);
  if (!library) fm_cannot(dlerror(), "reinstall the library, or leave it out");
  if (asked->core && !strcmp(asked->family, "blis")) {
    char number[16];
    snprintf(number, sizeof number, "%d", blis_number(library, asked->core));
    if (number[0] == '-') fm_cannot("this BLIS does not know the kernels asked for", "");
    setenv(variable, number, 1);
  }
  return library;
}

struct mkl_version {
  int major, minor, update;
  char *status, *build, *processor, *platform;
};

/* The kernels that the library chose, as it names them itself. */
static const char *kernel_of(void *library) {
  static struct mkl_version mkl;
  FUNCTION(const char *, openblas_get_corename, library, void);
  FUNCTION(int, bli_arch_query_id, library, void);
  FUNCTION(const char *, bli_arch_string, library, int);
  FUNCTION(void, mkl_get_version, library, struct mkl_version *);
  if (openblas_get_corename) return openblas_get_corename();
  if (bli_arch_query_id && bli_arch_string) return bli_arch_string(bli_arch_query_id());
  if (mkl_get_version) mkl_get_version(&mkl);
  return mkl.processor ? mkl.processor : "unknown";
}

/* Notes: the kernels, and VARIABLE=VALUE if they were forced, by us or the environment. */
static void describe(const struct asked *asked, void *library, char *notes, size_t room) {
  const char *variable = variable_of(asked->family);
  const char *value = variable ? getenv(variable) : NULL;
  const int plain = value && !value[strcspn(value, "\"\\\n")];
  snprintf(notes, room, "\"kernel\": \"%s\", \"%s\": \"%s%s%s\"", kernel_of(library),
           asked->core ? "forced_by" : "environment", plain ? variable : "", plain ? "=" : "",
           plain ? value : "");
}

/* Gives each of the library's threads a cpu of its own, where it keeps them between products; on a
 * busy machine Linux may leave two on one cpu for long. Those of BLIS live for one product only. */
static void spread_threads(const struct asked *asked) {
  static int threads[FM_MOST_CPUS];
  int count = 0;
  DIR *tasks = opendir("/proc/self/task");
  for (struct dirent *task; tasks && (task = readdir(tasks));)
    if (task->d_name[0] != '.' && count < FM_MOST_CPUS) threads[count++] = atoi(task->d_name);
  if (tasks) closedir(tasks);
  for (int i = 0; count == asked->threads && i < count; i++)
    fm_keep_on(threads[i], &asked->cpus[i], 1);
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
  spread_threads(asked);
  measure_type(asked, &types[0], matrices, start + asked->seconds * 2 / 3, notes);
  measure_type(asked, &types[1], matrices, start + asked->seconds, notes);
}

static void read_sizes(struct asked *asked, const char *list) {
  const char *at = list;
  for (asked->size_count = 0; asked->size_count < MAX_SIZES; at++) {
    char *end;
    const long n = strtol(at, &end, 10);
    if (end == at || n < 1 || n > 100000) fm_fail("--sizes %s: write it as 128,1000,4096", list);
    asked->sizes[asked->size_count++] = n;
    if (*end == '\0') return;
    at = end;
  }
  fm_fail("--sizes: more than %d", MAX_SIZES);
}

static void read_option(struct asked *asked, const char *name, const char *value) {
  if (!strcmp(name, "--library")) asked->library = value;
  if (!strcmp(name, "--symbol")) asked->symbol = value;
  if (!strcmp(name, "--family")) asked->family = value;
  if (!strcmp(name, "--core")) asked->core = value;
  if (!strcmp(name, "--cpus")) asked->threads = fm_parse_cpus(value, asked->cpus);
  if (!strcmp(name, "--sizes")) read_sizes(asked, value);
  if (!strcmp(name, "--seconds")) asked->seconds = atof(value);
  if (!strcmp(name, "--least")) asked->least = atof(value);
}

static void read_words(struct asked *asked, int count, char **words) {
  for (int i = 1; i + 1 < count; i += 2) read_option(asked, words[i], words[i + 1]);
  if (!asked->library || !asked->threads || !strstr(asked->symbol, "{}"))
    fm_fail(
        "usage: gemm --library FILE --symbol {}_ --family NAME --cpus LIST"
        " [--core NAME] [--sizes LIST] [--seconds S] [--least S]");
}

static void find_gemm(struct type *type, void *library, const char *symbol) {
  const char *braces = strstr(symbol, "{}");
  char name[200];
  snprintf(name, sizeof name, "%.*s%s%s", (int)(braces - symbol), symbol, type->blas, braces + 2);
  type->multiply = (gemm_function *)dlsym(library, name);
  if (!type->multiply) fm_cannot("the library lacks the function asked for", "");
}

int main(int count, char **words) {
  static struct asked asked = {.symbol = "{}_", .family = "other", .seconds = 3, .least = 0.02};
  struct type types[] = {{"f64", "dgemm", 8, 0x1p-53, NULL, 0},
                         {"f32", "sgemm", 4, 0x1p-24, NULL, 0}};
  char notes[400];
  read_sizes(&asked, "128,256,384,512,768,1000,1024,1536,2000,2048,3072,4096");
  read_words(&asked, count, words);
  fm_keep_on(0, asked.cpus, asked.threads);
  void *library = open_library(&asked);
  set_threads(library, asked.threads);
  for (int t = 0; t < 2; t++) find_gemm(&types[t], library, asked.symbol);
  describe(&asked, library, notes, sizeof notes);
  measure(&asked, types, notes);
  fm_end();
  fflush(stdout);
  _exit(FM_OK); /* some libraries hang at exit once their threads are gone */
}
