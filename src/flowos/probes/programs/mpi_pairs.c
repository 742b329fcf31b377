/* Pairs of MPI ranks: latency, bandwidth one way and both ways, message rate and allreduce over
 * message sizes, as the OSU benchmarks define them, so that the numbers can be compared with
 * theirs.
 *
 *   mpi_pairs [--gpu] REPETITIONS SECONDS [LARGEST_BYTES [BYTES ...]]
 *
 * --gpu: the messages are in the memory of a GPU, and the metrics' names begin with gpu_.
 * BYTES: measure these sizes alone.
 *
 * latency    half a ping-pong round trip, second
 * bandwidth  64 messages in flight one way, answered by one of 4 bytes, byte/s
 * bidirectional_bandwidth  64 messages in flight each way, byte/s both ways together
 * allreduce  sum of floats, mean over the ranks, a barrier after each, second
 * multi_pair_bandwidth, message_rate  bandwidth of all pairs at once, and its messages, 1/s; the
 *            time is the mean over the senders
 *
 * 2 ranks give all of them, 2 n the last two alone. Rank i sends to rank i + n, where ranks are
 * counted node by node: of two nodes each has half of them.
 *
 * Each size is warmed up, then measured REPETITIONS times for about SECONDS. Every repetition sends
 * data of its own, compared byte by byte outside the measured time, and is a turn (flowos_turns.h),
 * warmed up anew where others had theirs in between. Rank 0 prints. */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <string.h>

#include "flowos_cuda.h"
#include "flowos_turns.h"

// NOLINTBEGIN(bugprone-casting-through-void): Open MPI's constants are such casts.
enum { WINDOW = 64, TAG = 1, MAX_REPETITIONS = 100, MAX_ITERATIONS = 1 << 20 };
enum { WARM_SHARE = 8 }; /* of a turn's iterations, before what is timed */
enum { PAGE_BYTES = 4096, MAX_BYTES = 1 << 28, ACK_BYTES = 4 };

/* all: the ranks, counted node by node. sent, received: what MPI is given; host_*: the same memory,
 * or where it is written and compared if it is a GPU's. */
typedef struct {
  MPI_Comm all;
  int rank, other, pairs, nodes, gpu;
  char *sent, *received, *host_sent, *host_received;
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
      MPI_Send(pair->sent, bytes, MPI_CHAR, 1, TAG, pair->all);
      MPI_Recv(pair->received, bytes, MPI_CHAR, 1, TAG, pair->all, MPI_STATUS_IGNORE);
    } else {
      MPI_Recv(pair->received, bytes, MPI_CHAR, 0, TAG, pair->all, MPI_STATUS_IGNORE);
      MPI_Send(pair->sent, bytes, MPI_CHAR, 0, TAG, pair->all);
    }
  }
  return (MPI_Wtime() - start) / (2.0 * iterations);
}

static int sends(const Pair *pair) { return pair->rank < pair->pairs; }

/* All messages of a window share a buffer, as in OSU: they carry the same bytes. */
static double one_way(const Pair *pair, int bytes, int iterations) {
  MPI_Request requests[WINDOW];
  MPI_Status statuses[WINDOW];
  char ack[ACK_BYTES] = {0};
  double spent = 0.0, of_senders = 0.0;
  const double start = MPI_Wtime();
  for (int i = 0; i < iterations; i++) {
    for (int j = 0; j < WINDOW; j++) {
      if (sends(pair))
        MPI_Isend(pair->sent, bytes, MPI_CHAR, pair->other, TAG, pair->all, requests + j);
      else
        MPI_Irecv(pair->received, bytes, MPI_CHAR, pair->other, TAG, pair->all, requests + j);
    }
    MPI_Waitall(WINDOW, requests, statuses);
    if (sends(pair))
      MPI_Recv(ack, ACK_BYTES, MPI_CHAR, pair->other, TAG + 1, pair->all, MPI_STATUS_IGNORE);
    else
      MPI_Send(ack, ACK_BYTES, MPI_CHAR, pair->other, TAG + 1, pair->all);
  }
  if (sends(pair)) spent = (MPI_Wtime() - start) / iterations;
  MPI_Reduce(&spent, &of_senders, 1, MPI_DOUBLE, MPI_SUM, 0, pair->all);
  return of_senders / pair->pairs;
}

static double both_ways(const Pair *pair, int bytes, int iterations) {
  MPI_Request requests[2 * WINDOW];
  MPI_Status statuses[2 * WINDOW];
  const int to_other = TAG + pair->rank, to_me = TAG + pair->other;
  const double start = MPI_Wtime();
  for (int i = 0; i < iterations; i++) {
    for (int j = 0; j < WINDOW; j++)
      MPI_Irecv(pair->received, bytes, MPI_CHAR, pair->other, to_me, pair->all, requests + j);
    for (int j = WINDOW; j < 2 * WINDOW; j++)
      MPI_Isend(pair->sent, bytes, MPI_CHAR, pair->other, to_other, pair->all, requests + j);
    MPI_Waitall(WINDOW, requests + WINDOW, statuses + WINDOW);
    MPI_Waitall(WINDOW, requests, statuses);
  }
  return (MPI_Wtime() - start) / iterations;
}

static double sum_all(const Pair *pair, int bytes, int iterations) {
  const int count = bytes / (int)sizeof(float);
  double spent = 0.0, all = 0.0;
  for (int i = 0; i < iterations; i++) {
    const double start = MPI_Wtime();
    MPI_Allreduce(pair->sent, pair->received, count, MPI_FLOAT, MPI_SUM, pair->all);
    spent += MPI_Wtime() - start;
    MPI_Barrier(pair->all);
  }
  MPI_Reduce(&spent, &all, 1, MPI_DOUBLE, MPI_SUM, 0, pair->all);
  return all / 2 / iterations;
}

static char pattern(int rank, int seed, int at) { return (char)(rank * 101 + seed * 7 + at * 31); }

static void prepare_bytes(const Pair *pair, int bytes, int seed) {
  for (int i = 0; i < bytes; i++) pair->host_sent[i] = pattern(pair->rank, seed, i);
}

static int right_bytes(const Pair *pair, int bytes, int seed) {
  for (int i = 0; i < bytes; i++)
    if (pair->host_received[i] != pattern(pair->other, seed, i)) return 0;
  return 1;
}

static int right_one_way(const Pair *pair, int bytes, int seed) {
  return sends(pair) || right_bytes(pair, bytes, seed);
}

static float term(int rank, int seed, int at) { return (float)((at + seed) % 1000 + rank); }

static void prepare_floats(const Pair *pair, int bytes, int seed) {
  float *const sent = (void *)pair->host_sent;
  for (int i = 0; i < bytes / (int)sizeof(float); i++) sent[i] = term(pair->rank, seed, i);
}

static int right_sum(const Pair *pair, int bytes, int seed) {
  const float *const received = (void *)pair->host_received;
  for (int i = 0; i < bytes / (int)sizeof(float); i++)
    if (received[i] != term(0, seed, i) + term(1, seed, i)) return 0;
  return 1;
}

static void prepare(const Test *test, const Pair *pair, int bytes, int seed) {
  test->prepare(pair, bytes, seed);
  memset(pair->host_received, 0x5a, (size_t)bytes);
  if (!pair->gpu) return;
  fm_cuda_put(pair->sent, pair->host_sent, (size_t)bytes);
  fm_cuda_put(pair->received, pair->host_received, (size_t)bytes);
}

static int came_right(const Test *test, const Pair *pair, int bytes, int seed) {
  if (pair->gpu) fm_cuda_get(pair->host_received, pair->received, (size_t)bytes);
  return test->right(pair, bytes, seed);
}

static const Test kTests[] = {
    {"latency", "second", 1, MAX_BYTES, 0, ping_pong, prepare_bytes, right_bytes},
    {"bandwidth", "byte/s", 1, MAX_BYTES, WINDOW, one_way, prepare_bytes, right_one_way},
    {"bidirectional_bandwidth", "byte/s", 1, MAX_BYTES, 2 * WINDOW, both_ways, prepare_bytes,
     right_bytes},
    {"allreduce", "second", 4, 1 << 20, 0, sum_all, prepare_floats, right_sum},
};
enum { TESTS = sizeof kTests / sizeof kTests[0] };

/* Doubles the iterations until they last: the count for `seconds`, and the warm-up. */
static int iterations_for(const Test *test, const Pair *pair, int bytes, double seconds) {
  int iterations = 2;
  double each = test->run(pair, bytes, iterations);
  MPI_Bcast(&each, 1, MPI_DOUBLE, 0, pair->all);
  while (each * iterations < seconds / 4 && iterations < MAX_ITERATIONS) {
    iterations *= 2;
    each = test->run(pair, bytes, iterations);
    MPI_Bcast(&each, 1, MPI_DOUBLE, 0, pair->all);
  }
  const double wanted = seconds / each;
  return wanted > MAX_ITERATIONS ? MAX_ITERATIONS : wanted < 2 ? 2 : (int)wanted;
}

static void fail_together(int wrong, const Test *test, int bytes, MPI_Comm all) {
  int any = 0;
  MPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_MAX, all);
  if (!any) return;
  if (wrong) fprintf(stderr, "mpi_pairs: %s of %d bytes: wrong data came\n", test->metric, bytes);
  MPI_Finalize();
  exit(FM_FAILED);
}

static void measure(const Test *test, const Pair *pair, int bytes, int repetitions, double seconds,
                    double *times) {
  fm_turn();
  prepare(test, pair, bytes, 0);
  const int iterations = iterations_for(test, pair, bytes, seconds);
  for (int i = 0; i < repetitions; i++) {
    fm_turn();
    prepare(test, pair, bytes, i + 1);
    if (fm_takes_turns()) test->run(pair, bytes, iterations / WARM_SHARE + 1);
    MPI_Barrier(pair->all);
    times[i] = test->run(pair, bytes, iterations);
    fail_together(!came_right(test, pair, bytes, i + 1), test, bytes, pair->all);
  }
}

typedef struct {
  int cpu, allowed;
} Place;

/* Where the ranks run, on rank 0: "0 1"; a star stands for a mask of several cpus. */
static void describe_cpus(const Pair *pair, char *text, size_t size) {
  cpu_set_t mask;
  const int ranks = 2 * pair->pairs;
  Place mine = {sched_getcpu(), 0};
  Place *const all = calloc((size_t)ranks, sizeof *all);
  if (!all) fm_fail("mpi_pairs: no memory for the places of %d ranks", ranks);
  if (sched_getaffinity(0, sizeof mask, &mask) == 0) mine.allowed = CPU_COUNT(&mask);
  MPI_Allgather(&mine, 2, MPI_INT, all, 2, MPI_INT, pair->all);
  text[0] = 0;
  for (int i = 0; i < ranks && strlen(text) + 16 < size; i++)
    snprintf(text + strlen(text), 16, "%s%d%s", i ? " " : "", all[i].cpu,
             all[i].allowed == 1 ? "" : "*");
  const int both_bound = all[0].allowed == 1 && all[1].allowed == 1;
  if (both_bound && all[0].cpu == all[1].cpu && pair->nodes == 1) {
    if (pair->rank == 0) fprintf(stderr, "mpi_pairs: both ranks are bound to cpu %d\n", mine.cpu);
    MPI_Finalize();
    exit(FM_FAILED);
  }
  free(all);
}

/* The ranks counted node by node, whichever way they were dealt out, and the number of nodes. */
static void count_by_node(Pair *pair) {
  MPI_Comm near = MPI_COMM_NULL;
  int first = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &first);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &near);
  MPI_Comm_rank(near, &ranks);
  const int is_first = ranks == 0;
  MPI_Bcast(&first, 1, MPI_INT, 0, near);
  MPI_Comm_free(&near);
  MPI_Comm_split(MPI_COMM_WORLD, 0, first, &pair->all);
  MPI_Comm_rank(pair->all, &pair->rank);
  MPI_Comm_size(pair->all, &ranks);
  MPI_Allreduce(&is_first, &pair->nodes, 1, MPI_INT, MPI_SUM, pair->all);
  pair->pairs = ranks / 2;
  pair->other = (pair->rank + pair->pairs) % ranks;
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

static void print(int first, const Test *test, const Pair *pair, int bytes, const double *times,
                  int count, const char *notes) {
  static double values[MAX_REPETITIONS];
  char metric[64], levels[64];
  snprintf(metric, sizeof metric, "%s%s", pair->gpu ? "gpu_" : "", test->metric);
  snprintf(levels, sizeof levels, "\"bytes\": \"%d\"", bytes);
  for (int i = 0; i < count; i++)
    values[i] = test->scale > 0 ? pair->pairs * test->scale * bytes / times[i] : times[i];
  if (pair->pairs == 1) fm_reading(first, metric, test->unit, values, count, levels, notes);
  if (test->run != one_way || pair->gpu) return;
  snprintf(levels, sizeof levels, "\"pairs\": \"%d\", \"bytes\": \"%d\"", pair->pairs, bytes);
  fm_reading(first && pair->pairs > 1, "multi_pair_bandwidth", test->unit, values, count, levels,
             notes);
  for (int i = 0; i < count; i++) values[i] /= bytes;
  fm_reading(0, "message_rate", "1/s", values, count, levels, notes);
}

static void measure_all(const Pair *pair, int repetitions, double seconds, int largest, int count,
                        char **words) {
  static double times[MAX_REPETITIONS];
  char cpus[256], notes[320];
  describe_cpus(pair, cpus, sizeof cpus);
  snprintf(notes, sizeof notes, "\"cpus\": \"%s\", \"nodes\": \"%d\"", cpus, pair->nodes);
  int first = 1;
  for (int t = 0; t < TESTS; t++) {
    const Test *const test = kTests + t;
    const int end = largest < test->largest ? largest : test->largest;
    if (pair->pairs > 1 && test->run != one_way) continue;
    for (int bytes = test->smallest; bytes <= end; bytes *= 2) {
      if (!is_asked(bytes, count, words)) continue;
      measure(test, pair, bytes, repetitions, seconds, times);
      if (pair->rank == 0) print(first, test, pair, bytes, times, repetitions, notes);
      first = 0;
    }
  }
  if (pair->rank == 0) fm_end();
}

/* Ends all ranks, with the reason from rank 0, unless messages can be in the memory of GPUs. It is
 * said before MPI_Finalize: mpirun may end rank 0 once another has ended. */
static void check_gpu(const Pair *pair, int number) {
  const int takes = fm_mpi_takes_cuda(), lacks = number < 0;
  int any_lacks = 0;
  MPI_Allreduce(&lacks, &any_lacks, 1, MPI_INT, MPI_MAX, pair->all);
  if (takes && !any_lacks) return;
  if (pair->rank == 0 && !takes)
    fm_say_cannot("this MPI is not CUDA-aware", "use one built with CUDA, or with a UCX that was");
  else if (pair->rank == 0)
    fm_say_cannot(lacks ? fm_cuda_fault : "the other rank has no GPU", "");
  MPI_Finalize();
  exit(FM_CANNOT);
}

static void allocate(Pair *pair, size_t bytes) {
  pair->sent = pair->host_sent = page_aligned(bytes);
  pair->received = pair->host_received = page_aligned(bytes);
  if (!pair->gpu) return;
  pair->sent = fm_cuda_memory(bytes);
  pair->received = fm_cuda_memory(bytes);
}

int main(int count, char **words) {
  int ranks = 0;
  Pair pair = {.gpu = count > 1 && strcmp(words[1], "--gpu") == 0};
  const int gpu = pair.gpu ? fm_cuda_take() : 0;
  MPI_Init(&count, &words);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks < 2 || ranks % 2)
    fm_fail("mpi_pairs: %d rank(s), not 2: was it started by the mpirun of another MPI?", ranks);
  count -= pair.gpu;
  words += pair.gpu;
  const int repetitions = count > 1 ? atoi(words[1]) : 0;
  const double seconds = count > 2 ? strtod(words[2], NULL) : 0;
  const int largest = count > 3 ? atoi(words[3]) : 4 << 20;
  if (repetitions < 1 || repetitions > MAX_REPETITIONS || seconds <= 0 || largest < 4 ||
      largest > MAX_BYTES)
    fm_fail(
        "mpi_pairs: usage: mpi_pairs [--gpu] REPETITIONS(1..%d) SECONDS [LARGEST_BYTES [BYTES "
        "...]]",
        MAX_REPETITIONS);
  count_by_node(&pair);
  if (pair.gpu) check_gpu(&pair, gpu);
  allocate(&pair, (size_t)largest);
  measure_all(&pair, repetitions, seconds, largest, count - 4, words + 4);
  fm_turn(); /* what follows is not part of another's turn */
  free(pair.host_sent);
  free(pair.host_received);
  MPI_Finalize();
  return FM_OK;
}
// NOLINTEND(bugprone-casting-through-void)
