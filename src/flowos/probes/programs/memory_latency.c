/* Time of one load over the size of the working set, from the first cache to memory.
 *
 *   memory_latency --cpu 0 [--node 0] [--least 16384] [--most 268435456] [--per-octave 2]
 *                  [--repetitions 5] [--seconds 0.002]
 *
 * One cycle of pointers passes every cache line once, in random order (Sattolo 1986): each load
 * waits for the one before, and no prefetcher knows the next. --node binds the memory to a NUMA
 * node. In huge pages where the system gives them, else misses of the TLB are in the time as well.
 * Readings per size: latency, in seconds. */
#define _GNU_SOURCE
#include <math.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "flowos_clock.h"

enum { MAX_REPETITIONS = 100, UNROLLED = 16, LINE = 64, HUGE_PAGE = 2 << 20 };
enum { MIN_BYTES = LINE * UNROLLED };
enum { BIND = 2, MAX_NODES = 1024, WORD_BITS = 8 * (int)sizeof(unsigned long) };

struct line {
  union {
    struct line *next;
    long place; /* while the cycle is made */
  };
  char rest[LINE - sizeof(void *)];
};

struct run {
  int cpu, node, per_octave, repetitions, printed;
  long least, most;
  double seconds; /* for which loads are timed at least */
};

static void bind_memory(int node) {
  unsigned long nodes[MAX_NODES / WORD_BITS] = {0};
  if (node >= MAX_NODES) fm_fail("--node %d: at most %d", node, MAX_NODES - 1);
  nodes[node / WORD_BITS] |= 1UL << node % WORD_BITS;
  if (syscall(SYS_set_mempolicy, BIND, nodes, (unsigned long)MAX_NODES))
    fm_cannot("memory cannot be bound to a NUMA node", "allow set_mempolicy");
}

static void *room_for(long bytes) {
  const size_t whole = (size_t)bytes + HUGE_PAGE;
  char *room = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) fm_cannot("not enough memory", "ask for a smaller --most");
  madvise(room, whole, MADV_HUGEPAGE);
  return room + (HUGE_PAGE - (uintptr_t)room % HUGE_PAGE) % HUGE_PAGE;
}

static uint64_t next_random(uint64_t *state) { /* xorshift64* (Vigna 2016) */
  *state ^= *state >> 12;
  *state ^= *state << 25;
  *state ^= *state >> 27;
  return *state * 0x2545f4914f6cdd1du;
}

static void make_cycle(struct line *lines, long count) {
  uint64_t state = 88172645463325252u;
  for (long i = 0; i < count; i++) lines[i].place = i;
  for (long i = count - 1; i > 0; i--) {
    const long j = (long)(next_random(&state) % (uint64_t)i);
    const long other = lines[j].place;
    lines[j].place = lines[i].place;
    lines[i].place = other;
  }
  for (long i = 0; i < count; i++) lines[i].next = &lines[lines[i].place];
}

/* steps: a multiple of UNROLLED */
static struct line *chase(struct line *at, long steps) {
  for (long i = 0; i < steps; i += UNROLLED) {
    at = at->next->next->next->next->next->next->next->next;
    at = at->next->next->next->next->next->next->next->next;
  }
  return at;
}

/* Once around, which brings into the caches what fits. */
static void check_cycle(struct line *lines, long count) {
  if (chase(lines, count) != lines) fm_fail("%ld loads did not come back to the first", count);
}

static void measure_size(struct run *run, struct line *lines, long count) {
  double latency[MAX_REPETITIONS];
  char levels[48];
  struct line *at = lines;
  make_cycle(lines, count);
  check_cycle(lines, count);
  for (int r = -1; r < run->repetitions; r++) { /* the first is warm-up */
    long steps = 0;
    double seconds;
    const double begin = fm_seconds();
    do {
      at = chase(at, 64L * UNROLLED);
      steps += 64L * UNROLLED;
      seconds = fm_seconds() - begin;
    } while (seconds < run->seconds);
    if (r >= 0) latency[r] = seconds / (double)steps;
  }
  if (!at) fm_fail("a load gave no address");
  snprintf(levels, sizeof levels, "\"bytes\": \"%ld\"", count * LINE);
  fm_reading(!run->printed++, "latency", "second", latency, run->repetitions, levels, "");
}

static void measure(int member, void *shared) {
  struct run *run = shared;
  (void)member;
  if (run->node >= 0) bind_memory(run->node);
  struct line *const lines = room_for(run->most);
  fm_dependent_adds_per_second(100000000);
  for (int step = 0;; step++) {
    const double bytes = (double)run->least * exp2((double)step / run->per_octave);
    if (bytes > 1.001 * (double)run->most) return;
    const long count = (long)(bytes / LINE / UNROLLED + 0.5) * UNROLLED;
    measure_size(run, lines, count < run->most / LINE ? count : run->most / LINE);
  }
}

static void read_words(struct run *run, int count, char **words) {
  for (int i = 1; i + 1 < count; i += 2) {
    if (!strcmp(words[i], "--cpu")) run->cpu = atoi(words[i + 1]);
    if (!strcmp(words[i], "--node")) run->node = atoi(words[i + 1]);
    if (!strcmp(words[i], "--least")) run->least = atol(words[i + 1]);
    if (!strcmp(words[i], "--most")) run->most = atol(words[i + 1]);
    if (!strcmp(words[i], "--per-octave")) run->per_octave = atoi(words[i + 1]);
    if (!strcmp(words[i], "--repetitions")) run->repetitions = atoi(words[i + 1]);
    if (!strcmp(words[i], "--seconds")) run->seconds = atof(words[i + 1]);
  }
}

static void refuse_odd(const struct run *run) {
  if (run->cpu < 0 || run->cpu >= FM_MAX_CPUS || run->least < MIN_BYTES || run->most < run->least ||
      run->per_octave < 1 || run->repetitions < 1 || run->repetitions > MAX_REPETITIONS ||
      !(run->seconds > 0 && run->seconds < 10))
    fm_fail(
        "usage: memory_latency --cpu NUMBER [--node NUMBER] [--least BYTES, at least %d]"
        " [--most BYTES] [--per-octave N] [--repetitions 1..%d] [--seconds S]",
        MIN_BYTES, MAX_REPETITIONS);
}

int main(int count, char **words) {
  struct run run = {-1, -1, 2, 5, 0, 16 << 10, 256 << 20, 0.002};
  read_words(&run, count, words);
  run.most -= run.most % MIN_BYTES;
  refuse_odd(&run);
  fm_on_each_cpu(&run.cpu, 1, measure, &run);
  fm_end();
  return FM_OK;
}
