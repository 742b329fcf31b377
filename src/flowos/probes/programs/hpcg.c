/* High Performance Conjugate Gradients, as HPCG 3.1 defines it (Dongarra, Heroux, Luszczek, 2016).
 *
 *   hpcg --cpus 0,1 [--size 48] [--seconds 3]
 *
 * A 27-point stencil (26, and -1 for each neighbour) on a box of size^3 rows for each thread; sets
 * of 50 iterations of conjugate gradients, preconditioned by one V-cycle over four levels, with a
 * symmetric Gauss-Seidel sweep before and after. What is a rank in HPCG's reference is a thread
 * here: a sweep takes the other boxes' values as they were when it began, and goes through its own
 * in their natural order. Rows are stored in full, with indices, as the rules ask.
 *
 * Readings, of each set: flops in flop/s, by HPCG's counts, a tenth of the set-up included as in
 * its rating; bandwidth in byte/s, what must be moved at least: HPCG's reads, and a write for each
 * row of a result. Before that its tests: symmetry of the matrix and of the preconditioner, and
 * convergence with an exaggerated diagonal. All sets must end with the same residual, less than
 * half. */
#define _GNU_SOURCE
#include <float.h>
#include <math.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "flowos_clock.h"

enum { LEVELS = 4, MAX_ENTRIES = 27, ITERATIONS = 50, MAX_SETS = 64, SPINS = 4000, APART = 8 };
enum vector { X, B, R, Z, P, AP, AZ, VECTORS }; /* coarse levels have R, Z and AZ alone */

/* A box of rows. A value outside of it stands behind the rows of a vector, and is fetched from
 * index[h] of the box owner[h]. */
struct level {
  int size;
  int32_t rows, outside, *columns, *owner, *index, *fine;
  uint8_t *counts, *diagonal_at;
  double *values, *vectors[VECTORS];
  int64_t entries;
};

struct box {
  struct level levels[LEVELS];
  int place[3];
};

/* Boxes next to each other in x, y, z. partial: sums of each box, of this inner product or the
 * one before, each in a line of its own. */
struct team {
  struct box *boxes;
  int count, shape[3], size;
  atomic_int waiting, round;
  double *partial[2], seconds, set_up, rates[MAX_SETS], bandwidths[MAX_SETS], residual;
  double asymmetry[2];
  int plain_iterations, iterations, sets, again;
};

static void *memory(int64_t count, size_t bytes) {
  const size_t all = (size_t)(count ? count : 1) * bytes;
  void *room = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) fm_cannot("not enough memory for the matrix", "ask for a smaller size");
  madvise(room, all, MADV_HUGEPAGE);
  return room;
}

/* Waits for all threads; gives its cpu away if that takes long. */
static void meet(struct team *team) {
  const int round = atomic_load(&team->round);
  if (atomic_fetch_add(&team->waiting, 1) == team->count - 1) {
    atomic_store(&team->waiting, 0);
    atomic_store(&team->round, round + 1);
    return;
  }
  for (int spins = 0; atomic_load_explicit(&team->round, memory_order_acquire) == round;)
    if (++spins > SPINS) sched_yield();
}

/* Fetches the values of other boxes that the rows of this one need. */
static void exchange(struct team *team, int me, int at, enum vector which) {
  const struct level *level = &team->boxes[me].levels[at];
  double *behind = level->vectors[which] + level->rows;
  meet(team);
  for (int32_t h = 0; h < level->outside; h++)
    behind[h] = team->boxes[level->owner[h]].levels[at].vectors[which][level->index[h]];
  meet(team);
}

static double row_times(const struct level *level, int32_t i, const double *x) {
  const double *values = level->values + (size_t)i * MAX_ENTRIES;
  const int32_t *columns = level->columns + (size_t)i * MAX_ENTRIES;
  double sum = 0;
  for (int k = 0; k < level->counts[i]; k++) sum += values[k] * x[columns[k]];
  return sum;
}

static void multiply(struct team *team, int me, int at, enum vector from, enum vector to) {
  const struct level *level = &team->boxes[me].levels[at];
  exchange(team, me, at, from);
  for (int32_t i = 0; i < level->rows; i++)
    level->vectors[to][i] = row_times(level, i, level->vectors[from]);
}

static void relax(const struct level *level, int32_t i) {
  const double *values = level->values + (size_t)i * MAX_ENTRIES;
  const int32_t *columns = level->columns + (size_t)i * MAX_ENTRIES;
  const double diagonal = values[level->diagonal_at[i]];
  double *x = level->vectors[Z], sum = level->vectors[R][i];
  for (int k = 0; k < level->counts[i]; k++) sum -= values[k] * x[columns[k]];
  x[i] = (sum + x[i] * diagonal) / diagonal;
}

/* A symmetric Gauss-Seidel sweep for A z = r. */
static void smooth(struct team *team, int me, int at) {
  const struct level *level = &team->boxes[me].levels[at];
  exchange(team, me, at, Z);
  for (int32_t i = 0; i < level->rows; i++) relax(level, i);
  for (int32_t i = level->rows; i--;) relax(level, i);
}

/* z = M r: the V-cycle. Rows of the coarse level are every second one of the fine level. */
static void precondition(struct team *team, int me, int at) {
  const struct level *fine = &team->boxes[me].levels[at], *coarse = fine + 1;
  memset(fine->vectors[Z], 0, (size_t)(fine->rows + fine->outside) * sizeof(double));
  smooth(team, me, at);
  if (at == LEVELS - 1) return;
  multiply(team, me, at, Z, AZ);
  for (int32_t i = 0; i < coarse->rows; i++) {
    const int32_t j = coarse->fine[i];
    coarse->vectors[R][i] = fine->vectors[R][j] - fine->vectors[AZ][j];
  }
  precondition(team, me, at + 1);
  for (int32_t i = 0; i < coarse->rows; i++)
    fine->vectors[Z][coarse->fine[i]] += coarse->vectors[Z][i];
  smooth(team, me, at);
}

/* The inner product over all boxes, the same number in each thread. turn: counts its calls. */
static double dot(struct team *team, int me, enum vector a, enum vector b, int *turn) {
  const struct level *level = team->boxes[me].levels;
  double *partial = team->partial[(*turn)++ % 2], sum = 0;
  for (int32_t i = 0; i < level->rows; i++) sum += level->vectors[a][i] * level->vectors[b][i];
  partial[(size_t)me * APART] = sum;
  meet(team);
  sum = 0;
  for (size_t t = 0; t < (size_t)team->count; t++) sum += partial[t * APART];
  return sum;
}

/* to = a + factor b */
static void add(const struct level *level, enum vector to, enum vector a, double factor,
                enum vector b) {
  double *out = level->vectors[to];
  const double *x = level->vectors[a], *y = level->vectors[b];
  for (int32_t i = 0; i < level->rows; i++) out[i] = x[i] + factor * y[i];
}

static void copy(const struct level *level, enum vector to, enum vector from) {
  memcpy(level->vectors[to], level->vectors[from], (size_t)level->rows * sizeof(double));
}

/* x from 0 until the residual has come down to the tolerance; returns the iterations. */
static int solve(struct team *team, int me, int most, double tolerance, int plain, int *turn,
                 double *residual) {
  const struct level *level = team->boxes[me].levels;
  double before = 0, first;
  int k = 0;
  memset(level->vectors[X], 0, (size_t)level->rows * sizeof(double));
  copy(level, P, X);
  multiply(team, me, 0, P, AP);
  add(level, R, B, -1, AP);
  first = sqrt(dot(team, me, R, R, turn));
  for (*residual = 1; k < most && *residual > tolerance; k++) {
    if (plain)
      copy(level, Z, R);
    else
      precondition(team, me, 0);
    const double rz = dot(team, me, R, Z, turn);
    if (k)
      add(level, P, Z, rz / before, P);
    else
      copy(level, P, Z);
    before = rz;
    multiply(team, me, 0, P, AP);
    const double alpha = rz / dot(team, me, P, AP, turn);
    add(level, X, X, alpha, P);
    add(level, R, R, -alpha, AP);
    *residual = sqrt(dot(team, me, R, R, turn)) / first;
  }
  return k;
}

/* The column of the row at (x, y, z) of the box, which may be one step outside; -1 if the grid ends
 * there. slots: columns of those outside, on a box that is larger by one in each direction. */
static int32_t column_at(const struct team *team, const struct box *box, struct level *level,
                         int32_t *slots, const int *at) {
  const int n = level->size, wide = n + 2;
  int owner[3], within[3];
  for (int d = 0; d < 3; d++) {
    const int step = at[d] < 0 ? -1 : at[d] >= n;
    owner[d] = box->place[d] + step;
    within[d] = at[d] - step * n;
    if (owner[d] < 0 || owner[d] >= team->shape[d]) return -1;
  }
  const int32_t index = (within[2] * n + within[1]) * n + within[0];
  const int rank = (owner[2] * team->shape[1] + owner[1]) * team->shape[0] + owner[0];
  if (&team->boxes[rank] == box) return index;
  int32_t *slot = &slots[((at[2] + 1) * wide + at[1] + 1) * wide + at[0] + 1];
  if (!*slot) {
    level->owner[level->outside] = rank;
    level->index[level->outside] = index;
    *slot = level->rows + level->outside++;
  }
  return *slot;
}

static void make_row(const struct team *team, struct box *box, struct level *level, int32_t *slots,
                     int32_t row) {
  const int n = level->size, x = row % n, y = row / n % n, z = row / n / n;
  int count = 0;
  for (int k = 0; k < MAX_ENTRIES; k++) {
    const int at[] = {x + k % 3 - 1, y + k / 3 % 3 - 1, z + k / 9 - 1};
    const int32_t column = column_at(team, box, level, slots, at);
    if (column < 0) continue;
    if (column == row) level->diagonal_at[row] = (uint8_t)count;
    level->columns[(size_t)row * MAX_ENTRIES + (size_t)count] = column;
    level->values[(size_t)row * MAX_ENTRIES + (size_t)count++] = column == row ? 26 : -1;
  }
  level->counts[row] = (uint8_t)count;
  level->entries += count;
}

static void make_level(const struct team *team, struct box *box, int at) {
  struct level *level = &box->levels[at];
  const int n = team->size >> at, wide = n + 2;
  const int32_t rows = n * n * n, max_outside = wide * wide * wide - rows;
  int32_t *slots = memory((int64_t)wide * wide * wide, sizeof *slots);
  level->size = n, level->rows = rows;
  level->columns = memory((int64_t)rows * MAX_ENTRIES, sizeof *level->columns);
  level->values = memory((int64_t)rows * MAX_ENTRIES, sizeof *level->values);
  level->counts = memory(rows, 1);
  level->diagonal_at = memory(rows, 1);
  level->owner = memory(max_outside, sizeof *level->owner);
  level->index = memory(max_outside, sizeof *level->index);
  for (int32_t row = 0; row < rows; row++) make_row(team, box, level, slots, row);
  munmap(slots, (size_t)wide * (size_t)wide * (size_t)wide * sizeof *slots);
  for (int v = 0; v < VECTORS; v++)
    if (!at || v == R || v == Z || v == AZ)
      level->vectors[v] = memory(rows + level->outside, sizeof(double));
  if (!at)
    for (int32_t i = 0; i < rows; i++) level->vectors[B][i] = 27 - level->counts[i];
  level->fine = memory(at ? rows : 0, sizeof *level->fine);
  for (int32_t i = 0; at && i < rows; i++)
    level->fine[i] = ((i / n / n * 2) * 2 * n + i / n % n * 2) * 2 * n + i % n * 2;
}

/* With a diagonal a million times as large, and more in nine rows, 12 iterations must do, 2 with
 * the preconditioner. */
static void test_convergence(struct team *team, int me, int *turn) {
  const struct level *level = team->boxes[me].levels;
  double unused;
  for (int32_t i = 0; i < level->rows; i++) {
    const double scale = !me && i < 9 && i < level->size ? (i + 2) * 1e6 : 1e6;
    level->values[(size_t)i * MAX_ENTRIES + level->diagonal_at[i]] *= scale;
    level->vectors[B][i] *= scale;
  }
  const int plain = solve(team, me, ITERATIONS, 1e-12, 1, turn, &unused);
  const int done = solve(team, me, ITERATIONS, 1e-12, 0, turn, &unused);
  if (!me) team->plain_iterations = plain, team->iterations = done;
  for (int32_t i = 0; i < level->rows; i++) {
    level->values[(size_t)i * MAX_ENTRIES + level->diagonal_at[i]] = 26;
    level->vectors[B][i] = 27 - level->counts[i];
  }
}

static void fill_randomly(const struct level *level, enum vector which, uint64_t state) {
  for (int32_t i = 0; i < level->rows; i++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    level->vectors[which][i] = (double)(state >> 11) * 0x1p-53 + 1;
  }
}

/* |x'Ay - y'Ax| and |x'My - y'Mx| in units of rounding, x and y random: X and P here. */
static void test_symmetry(struct team *team, int me, int *turn) {
  static const enum vector random[] = {X, P};
  const struct level *level = team->boxes[me].levels;
  double found[2][2];
  for (int v = 0; v < 2; v++) fill_randomly(level, random[v], 2 * (uint64_t)me + (uint64_t)v);
  const double xx = dot(team, me, X, X, turn), yy = dot(team, me, P, P, turn);
  for (int v = 0; v < 2; v++) {
    multiply(team, me, 0, random[v], AP);
    found[0][v] = dot(team, me, random[1 - v], AP, turn);
    copy(level, R, random[v]);
    precondition(team, me, 0);
    found[1][v] = dot(team, me, random[1 - v], Z, turn);
  }
  for (int t = 0; !me && t < 2; t++)
    team->asymmetry[t] = fabs(found[t][0] - found[t][1]) / (2 * xx * 52 * yy * DBL_EPSILON);
}

/* What HPCG counts for a set: operations and, with `bytes`, what is moved. */
static double counted(const struct team *team, int bytes) {
  double all = 0;
  for (int at = 0; at < LEVELS; at++) {
    double rows = 0, entries = 0;
    for (int t = 0; t < team->count; t++) {
      rows += (double)team->boxes[t].levels[at].rows;
      entries += (double)team->boxes[t].levels[at].entries;
    }
    const double product = bytes ? 12 * entries + 16 * rows : 2 * entries;
    const double sweep = bytes ? 24 * entries + 16 * rows : 4 * entries;
    if (!at) {
      all += (ITERATIONS + 1) * product;
      all += (3 * ITERATIONS + 1) * (bytes ? 16 + 24 : 2 + 2) * rows;
    }
    all += ITERATIONS * (at == LEVELS - 1 ? sweep : 2 * sweep + product);
  }
  return all;
}

/* Sets until the time is over, one at least. The first thread decides. */
static void measure(struct team *team, int me, int *turn) {
  const double until = fm_seconds() + team->seconds;
  for (int set = 0, again = 1; again; set++) {
    double residual;
    meet(team);
    const double start = fm_seconds();
    solve(team, me, ITERATIONS, 0, 0, turn, &residual);
    meet(team);
    const double took = fm_seconds() - start;
    if (!me) {
      if (!(residual < 0.5))
        fm_fail("50 iterations left the residual at %g of the first", residual);
      if (set && residual != team->residual)
        fm_fail("set %d ended with residual %g, others with %g", set + 1, residual, team->residual);
      team->rates[set] = counted(team, 0) / (took + team->set_up / 10);
      team->bandwidths[set] = counted(team, 1) / took;
      team->residual = residual;
      team->sets = set + 1;
      team->again = fm_seconds() + took < until && team->sets < MAX_SETS;
    }
    meet(team);
    again = team->again;
  }
}

static void check(const struct team *team) {
  if (team->plain_iterations > 12 || team->iterations > 2)
    fm_fail("conjugate gradients took %d and %d iterations, where 12 and 2 must do",
            team->plain_iterations, team->iterations);
  if (!(team->asymmetry[0] <= 1) || !(team->asymmetry[1] <= 1))
    fm_fail("not symmetric: the matrix by %g, the preconditioner by %g", team->asymmetry[0],
            team->asymmetry[1]);
}

static void run(int me, void *shared) {
  struct team *team = shared;
  struct box *box = &team->boxes[me];
  int turn = 0;
  const double start = fm_seconds();
  for (int d = 0, rest = me; d < 3; rest /= team->shape[d++]) box->place[d] = rest % team->shape[d];
  for (int at = 0; at < LEVELS; at++) make_level(team, box, at);
  meet(team);
  if (!me) team->set_up = fm_seconds() - start;
  test_convergence(team, me, &turn);
  test_symmetry(team, me, &turn);
  meet(team);
  if (!me) check(team);
  measure(team, me, &turn);
}

/* x >= y >= z with the least surface between boxes. */
static void shape_of(int count, int *shape) {
  double least = INFINITY;
  for (int z = 1; z * z * z <= count; z++)
    for (int y = z; count % z == 0 && y * y <= count / z; y++) {
      const int x = count / z / y;
      const double surface = (double)x * y + (double)y * z + (double)x * z;
      if (count / z % y || surface >= least) continue;
      least = surface;
      shape[0] = x, shape[1] = y, shape[2] = z;
    }
}

int main(int count, char **words) {
  static int cpus[FM_MAX_CPUS];
  struct team team = {.size = 48, .seconds = 3};
  char notes[200];
  for (int i = 1; i + 1 < count; i += 2) {
    if (!strcmp(words[i], "--cpus")) team.count = fm_parse_cpus(words[i + 1], cpus);
    if (!strcmp(words[i], "--size")) team.size = atoi(words[i + 1]);
    if (!strcmp(words[i], "--seconds")) team.seconds = atof(words[i + 1]);
  }
  if (!team.count || team.size < 16 || team.size > 400 || team.size % 8)
    fm_fail("usage: hpcg --cpus LIST [--size 16..400, a multiple of 8] [--seconds S]");
  shape_of(team.count, team.shape);
  team.boxes = memory(team.count, sizeof *team.boxes);
  for (int i = 0; i < 2; i++) team.partial[i] = memory(team.count, APART * sizeof(double));
  fm_on_each_cpu(cpus, team.count, run, &team);
  snprintf(notes, sizeof notes, "\"residual\": \"%.6g\", \"set_up_seconds\": \"%.3g\"",
           team.residual, team.set_up);
  fm_reading(1, "flops", "flop/s", team.rates, team.sets, "", notes);
  fm_reading(0, "bandwidth", "byte/s", team.bandwidths, team.sets, "", notes);
  fm_end();
  return FM_OK;
}
