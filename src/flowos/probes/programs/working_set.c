/* Bandwidth over the size of the working set, from the first cache to memory.
 *
 *   working_set --cpus 0,1 [--least 16384] [--most 1073741824] [--limit 0] [--per-octave 3]
 *               [--repetitions 4] [--seconds 0.002]
 *
 * For sizes that grow by 2^(1/per-octave), each thread on its cpu works again and again on its
 * share of `bytes`. Where the best rate of the largest size is still less than 0.9 of that of an
 * octave before, sizes go on growing, to --limit. None takes more than half of the memory that is
 * available.
 * Readings per size, in byte/s of all threads together: read, triad (a = b + 3 c; 24 bytes each, so
 * without what a cache reads only to overwrite it) and triad_nt, which stores past the caches
 * (x86-64). Memory is touched first by the thread that uses it, in huge pages where the system
 * gives them, and outside of what is timed. */
#define _GNU_SOURCE
#include <math.h>
#include <sys/mman.h>

#include "flowos_clock.h"

enum { READ, TRIAD, TRIAD_NT, KERNELS };
enum { MAX_REPETITIONS = 100, MAX_SIZES = 4096, GRAIN = 512, PAGE = 4096, HUGE_PAGE = 2 << 20 };
static const double flat = 0.9;
static const char *const names[] = {"read", "triad", "triad_nt"};

typedef double read_function(const void *from, long bytes);
typedef void triad_function(void *to, const void *b, const void *c, long bytes);

/* Bytes are multiples of GRAIN, which is eight of the widest vectors. */
#define READ_KERNEL(name, vector, attribute)                                        \
  attribute static double name(const void *from, long bytes) {                      \
    const vector *v = from;                                                         \
    vector s0 = {0}, s1 = s0, s2 = s0, s3 = s0, s4 = s0, s5 = s0, s6 = s0, s7 = s0; \
    for (long i = 0; i < bytes / (long)sizeof *v; i += 8) {                         \
      s0 += v[i], s1 += v[i + 1], s2 += v[i + 2], s3 += v[i + 3];                   \
      s4 += v[i + 4], s5 += v[i + 5], s6 += v[i + 6], s7 += v[i + 7];               \
    }                                                                               \
    s0 = ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7));                         \
    double sum = 0;                                                                 \
    for (size_t i = 0; i < sizeof s0 / sizeof sum; i++) sum += s0[i];               \
    return sum;                                                                     \
  }
#define TRIAD_KERNEL(name, vector, attribute, STORE)                                         \
  attribute static void name(void *to, const void *from_b, const void *from_c, long bytes) { \
    __typeof__(vector) *a = to;                                                              \
    const vector *b = from_b, *c = from_c;                                                   \
    for (long i = 0; i < bytes / (long)sizeof *a; i += 4) {                                  \
      STORE(a + i, b[i] + 3.0 * c[i]);                                                       \
      STORE(a + i + 1, b[i + 1] + 3.0 * c[i + 1]);                                           \
      STORE(a + i + 2, b[i + 2] + 3.0 * c[i + 2]);                                           \
      STORE(a + i + 3, b[i + 3] + 3.0 * c[i + 3]);                                           \
    }                                                                                        \
  }
#define PLAIN(to, value) (*(to) = (value))

typedef double vector16 __attribute__((vector_size(16)));
READ_KERNEL(read16, vector16, )
TRIAD_KERNEL(triad16, vector16, , PLAIN)

#if defined(__x86_64__)
#define AVX __attribute__((target("avx")))
#define AVX512 __attribute__((target("avx512f")))
#define STREAM16(to, value) __asm__ volatile("movntpd %1, %0" : "=m"(*(to)) : "x"(value))
#define STREAM32(to, value) __asm__ volatile("vmovntpd %1, %0" : "=m"(*(to)) : "x"(value))
#define STREAM64(to, value) __asm__ volatile("vmovntpd %1, %0" : "=m"(*(to)) : "v"(value))
typedef double vector32 __attribute__((vector_size(32)));
typedef double vector64 __attribute__((vector_size(64)));
TRIAD_KERNEL(triad_nt16, vector16, , STREAM16)
READ_KERNEL(read32, vector32, AVX)
TRIAD_KERNEL(triad32, vector32, AVX, PLAIN)
TRIAD_KERNEL(triad_nt32, vector32, AVX, STREAM32)
READ_KERNEL(read64, vector64, AVX512)
TRIAD_KERNEL(triad64, vector64, AVX512, PLAIN)
TRIAD_KERNEL(triad_nt64, vector64, AVX512, STREAM64)
#endif

struct kernels {
  int vector_bits;
  read_function *read;
  triad_function *triad, *triad_nt; /* NULL: this architecture has no such stores */
};

static struct kernels widest(void) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return (struct kernels){512, read64, triad64, triad_nt64};
  if (__builtin_cpu_supports("avx")) return (struct kernels){256, read32, triad32, triad_nt32};
  return (struct kernels){128, read16, triad16, triad_nt16};
#else
  return (struct kernels){128, read16, triad16, NULL};
#endif
}

struct run {
  int members, per_octave, repetitions, printed;
  long least, most;       /* bytes of all members together */
  long limit;             /* to which the sizes go on where the curve still falls */
  double best[MAX_SIZES]; /* rate of each size, of whatever kernel */
  double window_seconds;  /* for which a kernel runs at least */
  pthread_barrier_t barrier;
  struct kernels kernels;
  double *start, *end; /* per member */
  long passes[KERNELS];
  double rate[KERNELS][MAX_REPETITIONS];
};

/* One member's arrays. Starts differ by parts of a page, as loads wait for stores to addresses
 * with equal lower 12 bits. */
struct share {
  char *room;
  long bytes; /* of each of a, b, c */
};
static char *array_of(const struct share *share, int which) {
  const long pages = (share->bytes + PAGE - 1) / PAGE + 1;
  return share->room + which * (pages * PAGE + 1408 - 1408 % 64);
}

static void fill(char *array, long bytes, double value) {
  for (long i = 0; i < bytes / 8; i++) ((double *)array)[i] = value;
}

static void *touched(long bytes) {
  const size_t whole = (size_t)bytes + HUGE_PAGE;
  char *room = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) fm_cannot("not enough memory", "ask for a smaller --most");
  madvise(room, whole, MADV_HUGEPAGE);
  return room + (HUGE_PAGE - (uintptr_t)room % HUGE_PAGE) % HUGE_PAGE;
}

/* Once over the share; returns the bytes moved. */
static long pass(const struct kernels *kernels, int kernel, const struct share *share) {
  char *a = array_of(share, 0), *b = array_of(share, 1), *c = array_of(share, 2);
  if (kernel == READ) {
    double sum = 0;
    for (int i = 0; i < 3; i++) sum += kernels->read(array_of(share, i), share->bytes);
    const double right = 3.0 * (double)share->bytes / 8;
    if (sum != right) fm_fail("read gave %.17g, not %.17g", sum, right);
  } else {
    (kernel == TRIAD ? kernels->triad : kernels->triad_nt)(a, b, c, share->bytes);
  }
  return 3 * share->bytes;
}

static void check_triad(const struct kernels *kernels, const struct share *share) {
  const double sum = kernels->read(array_of(share, 0), share->bytes);
  const double right = 4.0 * (double)share->bytes / 8;
  if (sum != right) fm_fail("triad gave %.17g in all, not %.17g", sum, right);
}

static long passes_for(const struct run *run, int kernel, const struct share *share) {
  for (long count = 1;; count *= 8) {
    const double start = fm_seconds();
    for (long i = 0; i < count; i++) pass(&run->kernels, kernel, share);
    const double took = fm_seconds() - start;
    if (took > run->window_seconds / 16)
      return 1 + (long)(run->window_seconds / took * (double)count);
  }
}

static void window(struct run *run, int member, int kernel, int repetition,
                   const struct share *share) {
  pthread_barrier_wait(&run->barrier);
  run->start[member] = fm_seconds();
  for (long i = 0; i < run->passes[kernel]; i++) pass(&run->kernels, kernel, share);
  run->end[member] = fm_seconds();
  pthread_barrier_wait(&run->barrier);
  if (member) return;
  double start = run->start[0], end = run->end[0];
  for (int i = 1; i < run->members; i++) {
    if (run->start[i] < start) start = run->start[i];
    if (run->end[i] > end) end = run->end[i];
  }
  const double bytes = 3.0 * (double)share->bytes * (double)run->passes[kernel] * run->members;
  run->rate[kernel][repetition] = bytes / (end - start);
}

static void print(struct run *run, const struct share *share) {
  char levels[64], notes[64];
  snprintf(levels, sizeof levels, "\"bytes\": \"%ld\"", 3 * share->bytes * run->members);
  snprintf(notes, sizeof notes, "\"vector_bits\": \"%d\"", run->kernels.vector_bits);
  for (int k = 0; k < KERNELS; k++)
    if (k != TRIAD_NT || run->kernels.triad_nt)
      fm_reading(!run->printed++, names[k], "byte/s", run->rate[k], run->repetitions, levels,
                 notes);
}

static double best_rate(const struct run *run) {
  double best = 0;
  for (int k = 0; k < KERNELS; k++)
    for (int r = 0; r < run->repetitions; r++)
      if (run->rate[k][r] > best) best = run->rate[k][r];
  return best;
}

static int still_falls(const struct run *run, int step) {
  const int before = step - 1 - run->per_octave;
  return before >= 0 && run->best[step - 1] < flat * run->best[before];
}

static void measure_size(struct run *run, int member, const struct share *share) {
  const int kernels = run->kernels.triad_nt ? KERNELS : TRIAD_NT;
  fill(array_of(share, 1), share->bytes, 1);
  fill(array_of(share, 2), share->bytes, 1);
  for (int k = 0; k < kernels; k++) {
    fill(array_of(share, 0), share->bytes, 1);
    if (member == 0) run->passes[k] = passes_for(run, k, share);
    for (int r = 0; r < run->repetitions; r++) window(run, member, k, r, share);
    if (k != READ) check_triad(&run->kernels, share);
  }
  if (member == 0) print(run, share);
}

static void measure(int member, void *shared) {
  struct run *run = shared;
  struct share share = {.room = touched(run->limit / run->members + 4L * PAGE)};
  fm_dependent_adds_per_second(100000000);
  for (int step = 0; step < MAX_SIZES; step++) {
    const double bytes = (double)run->least * exp2((double)step / run->per_octave);
    if (bytes > (double)run->limit) return;
    if (bytes > (double)run->most && !still_falls(run, step)) return;
    share.bytes = (long)(bytes / run->members / 3 / GRAIN + 0.5) * GRAIN;
    if (share.bytes) measure_size(run, member, &share);
    if (member == 0) run->best[step] = best_rate(run);
    pthread_barrier_wait(&run->barrier);
  }
}

static void read_words(struct run *run, int *cpus, int count, char **words) {
  for (int i = 1; i + 1 < count; i += 2) {
    if (!strcmp(words[i], "--cpus")) run->members = fm_parse_cpus(words[i + 1], cpus);
    if (!strcmp(words[i], "--least")) run->least = atol(words[i + 1]);
    if (!strcmp(words[i], "--most")) run->most = atol(words[i + 1]);
    if (!strcmp(words[i], "--limit")) run->limit = atol(words[i + 1]);
    if (!strcmp(words[i], "--per-octave")) run->per_octave = atoi(words[i + 1]);
    if (!strcmp(words[i], "--repetitions")) run->repetitions = atoi(words[i + 1]);
    if (!strcmp(words[i], "--seconds")) run->window_seconds = atof(words[i + 1]);
  }
}

static void refuse_odd(const struct run *run) {
  if (!run->members || run->least < 3L * GRAIN * run->members || run->most < run->least ||
      run->per_octave < 1 || run->repetitions < 1 || run->repetitions > MAX_REPETITIONS)
    fm_fail(
        "usage: working_set --cpus LIST [--least BYTES, at least %d per cpu] [--most BYTES]"
        " [--limit BYTES] [--per-octave N] [--repetitions 1..%d] [--seconds S]",
        3 * GRAIN, MAX_REPETITIONS);
}

/* 0 where the kernel does not say. */
static long available_bytes(void) {
  char line[128];
  long kilobytes = 0;
  FILE *file = fopen("/proc/meminfo", "r");
  while (file && fgets(line, sizeof line, file))
    if (sscanf(line, "MemAvailable: %ld kB", &kilobytes) == 1) break;
  if (file) fclose(file);
  return kilobytes * 1024;
}

static void set_limit(struct run *run) {
  const long half = available_bytes() / 2;
  if (run->limit < run->most) run->limit = run->most;
  if (half < run->least) return; /* not known, or so little that nothing helps */
  if (run->most > half) run->most = half;
  if (run->limit > half) run->limit = half;
}

int main(int count, char **words) {
  static int cpus[FM_MAX_CPUS];
  static struct run run = {.least = 16 << 10,
                           .most = 1 << 30,
                           .per_octave = 3,
                           .repetitions = 4,
                           .window_seconds = 0.002};
  read_words(&run, cpus, count, words);
  refuse_odd(&run);
  set_limit(&run);
  run.kernels = widest();
  run.start = calloc((size_t)run.members, sizeof *run.start);
  run.end = calloc((size_t)run.members, sizeof *run.end);
  if (!run.start || !run.end) fm_fail("no memory for %d threads", run.members);
  pthread_barrier_init(&run.barrier, NULL, (unsigned)run.members);
  fm_on_each_cpu(cpus, run.members, measure, &run);
  fm_end();
  return FM_OK;
}
