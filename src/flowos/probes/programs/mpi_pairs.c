/* Two MPI ranks: latency, bandwidth and allreduce over message sizes, as the OSU benchmarks define
 * them, so that the numbers can be compared with theirs.
 *
 *   mpi_pairs REPETITIONS SECONDS [LARGEST_BYTES [BYTES ...]]
 *
 * BYTES: measure these sizes alone.
 *
 * latency    half a ping-pong round trip, second
 * bandwidth  64 messages in flight one way, answered by one of 4 bytes, byte/s
 * allreduce  sum of floats, mean over the ranks, a barrier after each, second
 *
 * Each size is warmed up, then measured REPETITIONS times for about SECONDS. Every repetition sends
 * data of its own, compared byte by byte outside the measured time, and is a turn (flowos_turns.h),
 * warmed up anew where others had theirs in between. Rank 0 prints. */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <string.h>

#include "flowos_turns.h"

// NOLINTBEGIN(bugprone-casting-through-void): Open MPI's constants are such casts.
enum { RANKS = 2, WINDOW = 64, TAG = 1, MAX_REPETITIONS = 100, MAX_ITERATIONS = 1 << 20 };
enum { WARM_SHARE = 8 }; /* of a turn's iterations, before what is timed */
enum { PAGE_BYTES = 4096, MAX_BYTES = 1 << 28, ACK_BYTES = 4 };

typedef struct {
  int rank, other;
  void *sent, *received;
} Pair;

/* Runs `iterations` of a test; returns what one takes in seconds, on rank 0. */
typedef double Run(const Pair *pair, int bytes, int iterations);
typedef void Prepare(const Pair *pair, int bytes, int seed);
typedef int Check(const Pair *pair, int bytes, int seed);

typedef struct {
  const char *metric, *unit;
  int smallest, largest;
  double scale; /* rate = scale x bytes / seconds; 0 for a time */
  Run *run;
  Prepare *prepare;
  Check *right;
} Test;

static double ping_pong(const Pair *pair, int bytes, int iterations) {
  const double start = MPI_Wtime();
  for (int i = 0; i < iterations; i++) {
    if (pair->rank == 0) {
      MPI_Send(pair->sent, bytes, MPI_CHAR, 1, TAG, MPI_COMM_WORLD);
      MPI_Recv(pair->received, bytes, MPI_CHAR, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      MPI_Recv(pair->received, bytes, MPI_CHAR, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(pair->sent, bytes, MPI_CHAR, 0, TAG, MPI_COMM_WORLD);
    }
  }
  return (MPI_Wtime() - start) / (2.0 * iterations);
}

/* All messages of a window share a buffer, as in OSU: they carry the same bytes. */
static double one_way(const Pair *pair, int bytes, int iterations) {
  MPI_Request requests[WINDOW];
  MPI_Status statuses[WINDOW];
  char ack[ACK_BYTES] = {0};
  const double start = MPI_Wtime();
  for (int i = 0; i < iterations; i++) {
    for (int j = 0; j < WINDOW; j++) {
      if (pair->rank == 0)
        MPI_Isend(pair->sent, bytes, MPI_CHAR, 1, TAG, MPI_COMM_WORLD, requests + j);
      else
        MPI_Irecv(pair->received, bytes, MPI_CHAR, 0, TAG, MPI_COMM_WORLD, requests + j);
    }
    MPI_Waitall(WINDOW, requests, statuses);
    if (pair->rank == 0)
      MPI_Recv(ack, ACK_BYTES, MPI_CHAR, 1, TAG + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
      MPI_Send(ack, ACK_BYTES, MPI_CHAR, 0, TAG + 1, MPI_COMM_WORLD);
  }
  return (MPI_Wtime() - start) / iterations;
}

static double sum_all(const Pair *pair, int bytes, int iterations) {
  const int count = bytes / (int)sizeof(float);
  double spent = 0.0, all = 0.0;
  for (int i = 0; i < iterations; i++) {
    const double start = MPI_Wtime();
    MPI_Allreduce(pair->sent, pair->received, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    spent += MPI_Wtime() - start;
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Reduce(&spent, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  return all / RANKS / iterations;
}

static char pattern(int rank, int seed, int at) { return (char)(rank * 101 + seed * 7 + at * 31); }

static void prepare_bytes(const Pair *pair, int bytes, int seed) {
  char *const sent = pair->sent;
  for (int i = 0; i < bytes; i++) sent[i] = pattern(pair->rank, seed, i);
  memset(pair->received, 0x5a, (size_t)bytes);
}

static int right_bytes(const Pair *pair, int bytes, int seed) {
  const char *const received = pair->received;
  for (int i = 0; i < bytes; i++)
    if (received[i] != pattern(pair->other, seed, i)) return 0;
  return 1;
}

/* Only rank 1 receives. */
static int right_one_way(const Pair *pair, int bytes, int seed) {
  return pair->rank == 0 || right_bytes(pair, bytes, seed);
}

static float term(int rank, int seed, int at) { return (float)((at + seed) % 1000 + rank); }

static void prepare_floats(const Pair *pair, int bytes, int seed) {
  float *const sent = pair->sent;
  for (int i = 0; i < bytes / (int)sizeof(float); i++) sent[i] = term(pair->rank, seed, i);
  memset(pair->received, 0x5a, (size_t)bytes);
}

static int right_sum(const Pair *pair, int bytes, int seed) {
  const float *const received = pair->received;
  for (int i = 0; i < bytes / (int)sizeof(float); i++)
    if (received[i] != term(0, seed, i) + term(1, seed, i)) return 0;
  return 1;
}

static const Test kTests[] = {
    {"latency", "second", 1, MAX_BYTES, 0, ping_pong, prepare_bytes, right_bytes},
    {"bandwidth", "byte/s", 1, MAX_BYTES, WINDOW, one_way, prepare_bytes, right_one_way},
    {"allreduce", "second", 4, 1 << 20, 0, sum_all, prepare_floats, right_sum},
};
enum { TESTS = sizeof kTests / sizeof kTests[0] };

/* Doubles the iterations until they last: the count for `seconds`, and the warm-up. */
static int iterations_for(const Test *test, const Pair *pair, int bytes, double seconds) {
  int iterations = 2;
  double each = test->run(pair, bytes, iterations);
  MPI_Bcast(&each, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  while (each * iterations < seconds / 4 && iterations < MAX_ITERATIONS) {
    iterations *= 2;
    each = test->run(pair, bytes, iterations);
    MPI_Bcast(&each, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  }
  const double wanted = seconds / each;
  return wanted > MAX_ITERATIONS ? MAX_ITERATIONS : wanted < 2 ? 2 : (int)wanted;
}

static void fail_together(int wrong, const Test *test, int bytes) {
  int any = 0;
  MPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (!any) return;
  if (wrong) fprintf(stderr, "mpi_pairs: %s of %d bytes: wrong data came\n", test->metric, bytes);
  MPI_Finalize();
  exit(FM_FAILED);
}

static void measure(const Test *test, const Pair *pair, int bytes, int repetitions, double seconds,
                    double *values) {
  fm_turn();
  test->prepare(pair, bytes, 0);
  const int iterations = iterations_for(test, pair, bytes, seconds);
  for (int i = 0; i < repetitions; i++) {
    fm_turn();
    test->prepare(pair, bytes, i + 1);
    if (fm_takes_turns()) test->run(pair, bytes, iterations / WARM_SHARE + 1);
    MPI_Barrier(MPI_COMM_WORLD);
    const double each = test->run(pair, bytes, iterations);
    values[i] = test->scale > 0 ? test->scale * bytes / each : each;
    fail_together(!test->right(pair, bytes, i + 1), test, bytes);
  }
}

static int on_one_node(void) {
  MPI_Comm near = MPI_COMM_NULL;
  int ranks = 0;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &near);
  MPI_Comm_size(near, &ranks);
  MPI_Comm_free(&near);
  return ranks == RANKS;
}

/* Where the two ranks run, on rank 0: "0 1"; a star stands for a mask of several cpus. */
static void describe_cpus(const Pair *pair, char *text, size_t size) {
  cpu_set_t allowed;
  int mine[2] = {sched_getcpu(), 0}, both[2 * RANKS] = {0};
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) mine[1] = CPU_COUNT(&allowed);
  MPI_Allgather(mine, 2, MPI_INT, both, 2, MPI_INT, MPI_COMM_WORLD);
  snprintf(text, size, "%d%s %d%s", both[0], both[1] == 1 ? "" : "*", both[2],
           both[3] == 1 ? "" : "*");
  if (both[1] == 1 && both[3] == 1 && both[0] == both[2] && on_one_node()) {
    if (pair->rank == 0) fprintf(stderr, "mpi_pairs: both ranks are bound to cpu %d\n", both[0]);
    MPI_Finalize();
    exit(FM_FAILED);
  }
}

static void *page_aligned(size_t bytes) {
  void *at = NULL;
  if (posix_memalign(&at, PAGE_BYTES, bytes)) fm_fail("mpi_pairs: no memory for the messages");
  return memset(at, 1, bytes);
}

/* Whether a size is among the words, if there are any. */
static int is_asked(int bytes, int count, char **words) {
  for (int i = 0; i < count; i++)
    if (atoi(words[i]) == bytes) return 1;
  return count <= 0;
}

static void measure_all(const Pair *pair, int repetitions, double seconds, int largest, int count,
                        char **words) {
  static double values[MAX_REPETITIONS];
  char cpus[64], levels[64], notes[128];
  describe_cpus(pair, cpus, sizeof cpus);
  snprintf(notes, sizeof notes, "\"cpus\": \"%s\"", cpus);
  int first = 1;
  for (int t = 0; t < TESTS; t++) {
    const Test *const test = kTests + t;
    const int end = largest < test->largest ? largest : test->largest;
    for (int bytes = test->smallest; bytes <= end; bytes *= 2) {
      if (!is_asked(bytes, count, words)) continue;
      measure(test, pair, bytes, repetitions, seconds, values);
      snprintf(levels, sizeof levels, "\"bytes\": \"%d\"", bytes);
      if (pair->rank == 0)
        fm_reading(first, test->metric, test->unit, values, repetitions, levels, notes);
      first = 0;
    }
  }
  if (pair->rank == 0) fm_end();
}

int main(int count, char **words) {
  int rank = 0, ranks = 0;
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks != RANKS)
    fm_fail("mpi_pairs: %d rank(s), not 2: was it started by the mpirun of another MPI?", ranks);
  const int repetitions = count > 1 ? atoi(words[1]) : 0;
  const double seconds = count > 2 ? strtod(words[2], NULL) : 0;
  const int largest = count > 3 ? atoi(words[3]) : 4 << 20;
  if (repetitions < 1 || repetitions > MAX_REPETITIONS || seconds <= 0 || largest < 4 ||
      largest > MAX_BYTES)
    fm_fail("mpi_pairs: usage: mpi_pairs REPETITIONS(1..%d) SECONDS [LARGEST_BYTES [BYTES ...]]",
            MAX_REPETITIONS);
  const Pair pair = {rank, 1 - rank, page_aligned((size_t)largest), page_aligned((size_t)largest)};
  measure_all(&pair, repetitions, seconds, largest, count - 4, words + 4);
  fm_turn(); /* what follows is not part of another's turn */
  free(pair.sent);
  free(pair.received);
  MPI_Finalize();
  return FM_OK;
}
// NOLINTEND(bugprone-casting-through-void)
