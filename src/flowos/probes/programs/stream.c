/* STREAM (McCalpin): sustained memory bandwidth of copy, scale, add and triad, in byte/s.
 *
 *   stream ELEMENTS THREADS REPEATS SECONDS plain|nt system|huge|small
 *
 * Three arrays of ELEMENTS doubles (a multiple of 64), touched first by the threads that use them;
 * OMP_NUM_THREADS must be THREADS.
 * At most REPEATS passes, at least 3, ended after SECONDS; the first is warm-up. Each pass is a
 * turn (flowos_turns.h). Bytes are those the kernels state, 16 16 24 24 per element: no
 * write-allocate. `nt` stores past the caches. `system` leaves huge pages to the system's policy,
 * `huge` and `small` advise it.
 *
 * Compile so that no loop is replaced by a call of memcpy, which may store past the caches as it
 * likes: -fno-builtin, for gcc -fno-tree-loop-distribute-patterns too. */
#define _GNU_SOURCE
#include <sched.h>
#include <string.h>
#include <sys/mman.h>

#include "flowos_turns.h"

enum { COPY, SCALE, ADD, TRIAD, KERNELS };
enum { MIN_REPEATS = 3, MAX_REPEATS = 200, HUGE_PAGE = 2 << 20 };
static const double kScalar = 3.0;
static const double kTolerance = 1e-13;

typedef struct {
  double *a, *b, *c;
  size_t count;
} Arrays;

typedef void Kernel(const Arrays *x);

static void copy_plain(const Arrays *x) {
  const double *restrict a = x->a;
  double *restrict c = x->c;
  const size_t n = x->count;
#pragma omp parallel for schedule(static)
  for (size_t j = 0; j < n; j++) c[j] = a[j];
}

static void scale_plain(const Arrays *x) {
  const double *restrict c = x->c;
  double *restrict b = x->b;
  const size_t n = x->count;
  const double s = kScalar;
#pragma omp parallel for schedule(static)
  for (size_t j = 0; j < n; j++) b[j] = s * c[j];
}

static void add_plain(const Arrays *x) {
  const double *restrict a = x->a, *restrict b = x->b;
  double *restrict c = x->c;
  const size_t n = x->count;
#pragma omp parallel for schedule(static)
  for (size_t j = 0; j < n; j++) c[j] = a[j] + b[j];
}

static void triad_plain(const Arrays *x) {
  const double *restrict b = x->b, *restrict c = x->c;
  double *restrict a = x->a;
  const size_t n = x->count;
  const double s = kScalar;
#pragma omp parallel for schedule(static)
  for (size_t j = 0; j < n; j++) a[j] = b[j] + s * c[j];
}

/* Non-temporal stores have no portable spelling. A pack is the widest vector that the flags allow
 * (on Arm the pair of registers that stnp stores). nvc knows no such vectors. */
#if defined(__NVCOMPILER)
enum { PACK_BYTES = 0 };
#elif defined(__AVX512F__)
enum { PACK_BYTES = 64 };
#define STORE_PAST "vmovntpd"
#elif defined(__AVX__)
enum { PACK_BYTES = 32 };
#define STORE_PAST "vmovntpd"
#elif defined(__x86_64__)
enum { PACK_BYTES = 16 };
#define STORE_PAST "movntpd"
#elif defined(__aarch64__)
enum { PACK_BYTES = 32 };
#else
enum { PACK_BYTES = 0 };
#endif

#if defined(STORE_PAST) || (defined(__aarch64__) && !defined(__NVCOMPILER))
enum { PACK = PACK_BYTES / sizeof(double) };
typedef double Pack __attribute__((vector_size(PACK_BYTES), may_alias));

static inline Pack load(const double *at) { return *(const Pack *)at; }

static inline void store_past(double *at, Pack pack) {
#ifdef STORE_PAST
  __asm__(STORE_PAST " %1, %0" : "=m"(*(Pack *)at) : "x"(pack));
#else
  typedef double Half __attribute__((vector_size(16)));
  const Half low = {pack[0], pack[1]}, high = {pack[2], pack[3]};
  __asm__("stnp %q1, %q2, %0" : "=Q"(*(Pack *)at) : "w"(low), "w"(high));
#endif
}

/* Such stores are not ordered by the barrier that ends a parallel loop. */
static inline void drain(void) {
#ifdef STORE_PAST
  __asm__ volatile("sfence" : : : "memory");
#else
  __asm__ volatile("dmb ish" : : : "memory");
#endif
}

static void copy_nt(const Arrays *x) {
  const double *a = x->a;
  double *c = x->c;
  const size_t n = x->count;
#pragma omp parallel
  {
#pragma omp for schedule(static)
    for (size_t j = 0; j < n; j += PACK) store_past(c + j, load(a + j));
    drain();
  }
}

static void scale_nt(const Arrays *x) {
  const double *c = x->c;
  double *b = x->b;
  const size_t n = x->count;
  const double s = kScalar;
#pragma omp parallel
  {
#pragma omp for schedule(static)
    for (size_t j = 0; j < n; j += PACK) store_past(b + j, s * load(c + j));
    drain();
  }
}

static void add_nt(const Arrays *x) {
  const double *a = x->a, *b = x->b;
  double *c = x->c;
  const size_t n = x->count;
#pragma omp parallel
  {
#pragma omp for schedule(static)
    for (size_t j = 0; j < n; j += PACK) store_past(c + j, load(a + j) + load(b + j));
    drain();
  }
}

static void triad_nt(const Arrays *x) {
  const double *b = x->b, *c = x->c;
  double *a = x->a;
  const size_t n = x->count;
  const double s = kScalar;
#pragma omp parallel
  {
#pragma omp for schedule(static)
    for (size_t j = 0; j < n; j += PACK) store_past(a + j, load(b + j) + s * load(c + j));
    drain();
  }
}
#else
#define copy_nt copy_plain
#define scale_nt scale_plain
#define add_nt add_plain
#define triad_nt triad_plain
#endif

static Kernel *const kPlain[KERNELS] = {copy_plain, scale_plain, add_plain, triad_plain};
static Kernel *const kNt[KERNELS] = {copy_nt, scale_nt, add_nt, triad_nt};

/* Aligned to a huge page, which no heap promises. */
static double *new_array(size_t count, const char *pages) {
  const size_t bytes = count * sizeof(double);
  char *const base =
      mmap(NULL, bytes + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) fm_cannot("not enough memory for the arrays", "free memory");
  const size_t gap = (HUGE_PAGE - (size_t)base % HUGE_PAGE) % HUGE_PAGE;
  void *const at = base + gap;
  if (strcmp(pages, "huge") == 0) madvise(at, bytes, MADV_HUGEPAGE);
  if (strcmp(pages, "small") == 0) madvise(at, bytes, MADV_NOHUGEPAGE);
  return at;
}

/* The page faults of all passes happen here, outside what is timed. */
static void first_touch(const Arrays *x) {
  double *a = x->a, *b = x->b, *c = x->c;
  const size_t n = x->count;
#pragma omp parallel for schedule(static)
  for (size_t j = 0; j < n; j++) {
    a[j] = 1.0;
    b[j] = 2.0;
    c[j] = 0.0;
  }
}

static double worst_error(const double *values, size_t count, double expected) {
  double worst = 0.0;
#pragma omp parallel for schedule(static) reduction(max : worst)
  for (size_t j = 0; j < count; j++) {
    const double error = values[j] > expected ? values[j] - expected : expected - values[j];
    /* written so that a NaN is the worst error of all */
    if (!(error <= worst)) worst = error;
  }
  return worst / expected;
}

/* Every element must be what the same operations give on single numbers. */
static void check(const Arrays *x, int passes) {
  double a = 1.0, b = 2.0, c = 0.0;
  for (int pass = 0; pass < passes; pass++) {
    c = a;
    b = kScalar * c;
    c = a + b;
    a = b + kScalar * c;
  }
  const double *const found[] = {x->a, x->b, x->c};
  const double expected[] = {a, b, c};
  for (int i = 0; i < 3; i++) {
    const double error = worst_error(found[i], x->count, expected[i]);
    if (!(error <= kTolerance))
      fm_fail("array %c is wrong by a relative %.3g after %d passes", 'a' + i, error, passes);
  }
}

/* Times `passes` of the four kernels; returns how many were made. */
static int measure(const Arrays *x, Kernel *const *kernels, int repeats, double seconds,
                   double times[KERNELS][MAX_REPEATS]) {
  double spent = 0;
  int pass = 0;
  while (pass < repeats && (pass < MIN_REPEATS || spent < seconds)) {
    fm_turn();
    for (int k = 0; k < KERNELS; k++) {
      const double start = fm_seconds();
      kernels[k](x);
      times[k][pass] = fm_seconds() - start;
      spent += times[k][pass];
    }
    pass++;
  }
  fm_turn(); /* what follows is not part of another's pass */
  return pass;
}

/* How many threads there are, and on how many distinct cpus they are now. */
static void count_threads(int *threads, int *cpus) {
  cpu_set_t seen;
  CPU_ZERO(&seen);
  int count = 0;
#pragma omp parallel
  {
#pragma omp critical
      {count++;
  CPU_SET((size_t)sched_getcpu(), &seen);
}
}
*threads = count;
*cpus = CPU_COUNT(&seen);
}

/* Bytes of this process that lie on huge pages. */
static long long huge_bytes(void) {
  FILE *file = fopen("/proc/self/smaps_rollup", "r");
  long long kilobytes = 0;
  char line[256];
  if (!file) return 0;
  while (fgets(line, sizeof line, file))
    if (strncmp(line, "AnonHugePages:", 14) == 0) kilobytes = strtoll(line + 14, NULL, 10);
  fclose(file);
  return kilobytes * 1024;
}

static void report(const Arrays *x, int passes, int cpus, double times[KERNELS][MAX_REPEATS]) {
  static const char *const names[KERNELS] = {"copy", "scale", "add", "triad"};
  static const double bytes[KERNELS] = {16, 16, 24, 24};
  char notes[160];
  snprintf(notes, sizeof notes,
           "\"elements\": \"%zu\", \"cpus\": \"%d\", \"huge_bytes\": \"%lld\", "
           "\"pack_bytes\": \"%d\"",
           x->count, cpus, huge_bytes(), PACK_BYTES);
  for (int k = 0; k < KERNELS; k++) {
    double rates[MAX_REPEATS];
    for (int i = 1; i < passes; i++) rates[i - 1] = bytes[k] * (double)x->count / times[k][i];
    fm_reading(k == 0, names[k], "byte/s", rates, passes - 1, "", notes);
  }
  fm_end();
}

static long number(const char *text, long least, long most, const char *name) {
  char *end;
  const long value = strtol(text, &end, 10);
  if (*end || end == text || value < least || value > most)
    fm_fail("%s=%s: give a whole number from %ld to %ld", name, text, least, most);
  return value;
}

/* The index of the word among the allowed ones. */
static int choice(const char *word, const char *first, const char *second, const char *third,
                  const char *allowed) {
  if (strcmp(word, first) == 0) return 0;
  if (strcmp(word, second) == 0) return 1;
  if (strcmp(word, third) != 0) fm_fail("%s: give %s", word, allowed);
  return 2;
}

int main(int count, char **words) {
  if (count != 7)
    fm_fail("usage: stream ELEMENTS THREADS REPEATS SECONDS plain|nt system|huge|small");
  const size_t elements = (size_t)number(words[1], 64, 1L << 40, "ELEMENTS") / 64 * 64;
  const long asked = number(words[2], 1, 1L << 16, "THREADS");
  const int repeats = (int)number(words[3], MIN_REPEATS, MAX_REPEATS, "REPEATS");
  char *end;
  const double seconds = strtod(words[4], &end);
  if (*end || !(seconds >= 0)) fm_fail("SECONDS=%s: give a number from 0", words[4]);
  const int nt = choice(words[5], "plain", "nt", "nt", "plain or nt");
  choice(words[6], "system", "huge", "small", "system, huge or small");
  if (nt && !PACK_BYTES) fm_cannot("no non-temporal store is known for this CPU and compiler", "");
  int threads = 0, cpus = 0;
  count_threads(&threads, &cpus);
  if (threads != asked)
    fm_fail("OpenMP gives %d threads, not %ld: set OMP_NUM_THREADS", threads, asked);
  const Arrays x = {new_array(elements, words[6]), new_array(elements, words[6]),
                    new_array(elements, words[6]), elements};
  first_touch(&x);
  static double times[KERNELS][MAX_REPEATS];
  const int passes = measure(&x, nt ? kNt : kPlain, repeats, seconds, times);
  count_threads(&threads, &cpus);
  check(&x, passes);
  report(&x, passes, cpus, times);
  return FM_OK;
}
