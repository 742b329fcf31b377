/* Is the machine quiet right now? Takes about a tenth of a second.
 *
 *   state --cpus 0,1
 *
 * Spins on the first cpu alone, then on all of them, in chunks of some 30 us, and reads
 *   clock           Hz  of the first cpu, by dependent adds
 *   add_imul_ratio  1   dependent adds per dependent multiply; 3 on x86-64 when undisturbed
 *   scaling         1   floating-point work per clock cycle of the slowest cpu while all spin, over
 *                       that of the first alone: about 0.5 where two cpus share one core, whatever
 *                       the clock does when many cores are busy
 *   starved_share   1   of the time of the worst thread: chunks that took far longer than the usual
 *                       one, because another process, a quota or the hypervisor had the cpu
 * Give one cpu per core and of one kind: siblings share a core by design. */
#include "flowos_clock.h"

enum { ADDS = 100000, MULTIPLIES = 33300, BLOCKS = 1500, MAX_CHUNKS = 4096 };
static const double warm_seconds = 0.01, alone_seconds = 0.02, together_seconds = 0.05;
static const double stalled = 1.5; /* chunks that take this many times the usual are stalled */

#if defined(__x86_64__)
/* Multiplies and adds on twelve zeros: enough independent work to fill the pipes of one core. */
static void fill_pipes(void) {
  __asm__ volatile(
      ".irp r, 0,1,2,3,4,5,6,7,8,9,10,11\n\t xorps %%xmm\\r, %%xmm\\r\n\t .endr\n\t"
      ".rept 16\n\t"
      ".irp r, 0,1,2,3,4,5\n\t mulpd %%xmm\\r, %%xmm\\r\n\t .endr\n\t"
      ".irp r, 6,7,8,9,10,11\n\t addpd %%xmm\\r, %%xmm\\r\n\t .endr\n\t"
      ".endr" ::
          : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",
            "xmm11");
}
#else
static void fill_pipes(void) {
  __asm__ volatile(
      ".irp r, 0,1,2,3,4,5,6,7,16,17,18,19\n\t movi v\\r\\().2d, #0\n\t .endr\n\t"
      ".rept 16\n\t"
      ".irp r, 0,1,2,3,4,5,6,7,16,17,18,19\n\t fmla v\\r\\().2d, v\\r\\().2d, v\\r\\().2d\n\t "
      ".endr\n\t"
      ".endr" ::
          : "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v16", "v17", "v18", "v19");
}
#endif

/* Result of spinning: median rates per second, and the share of stalled time. */
struct spin {
  double adds, multiplies, blocks, starved;
};

static double blocks_per_second(void) {
  const double start = fm_seconds();
  for (int i = 0; i < BLOCKS; i++) fill_pipes();
  return BLOCKS / (fm_seconds() - start);
}

static double stalled_share(double *seconds, int count) {
  const double usual = fm_median(seconds, count);
  double lost = 0, total = 0;
  for (int i = 0; i < count; i++) {
    total += seconds[i];
    if (seconds[i] > stalled * usual) lost += seconds[i] - usual;
  }
  return lost / total;
}

static struct spin spin_for(double seconds) {
  double adds[MAX_CHUNKS], multiplies[MAX_CHUNKS], blocks[MAX_CHUNKS], took[MAX_CHUNKS];
  const double start = fm_seconds();
  double now = start;
  int count = 0;
  while (count < MAX_CHUNKS && now < start + seconds) {
    const double before = now;
    adds[count] = fm_dependent_adds_per_second(ADDS);
    multiplies[count] = fm_dependent_multiplies_per_second(MULTIPLIES);
    blocks[count] = blocks_per_second();
    now = fm_seconds();
    took[count++] = now - before;
  }
  return (struct spin){fm_median(adds, count), fm_median(multiplies, count),
                       fm_median(blocks, count), stalled_share(took, count)};
}

struct team {
  pthread_barrier_t start;
  double seconds;
  struct spin *spins;
};

static void spin_member(int member, void *shared) {
  struct team *team = shared;
  spin_for(warm_seconds);
  pthread_barrier_wait(&team->start);
  team->spins[member] = spin_for(team->seconds);
}

static void spin_on(const int *cpus, int count, double seconds, struct spin *spins) {
  struct team team = {.seconds = seconds, .spins = spins};
  pthread_barrier_init(&team.start, NULL, (unsigned)count);
  fm_on_each_cpu(cpus, count, spin_member, &team);
  pthread_barrier_destroy(&team.start);
}

int main(int count, char **words) {
  static int cpus[FM_MAX_CPUS];
  static struct spin alone, together[FM_MAX_CPUS];
  if (count != 3 || strcmp(words[1], "--cpus") != 0) fm_fail("usage: state --cpus LIST");
  const int cpu_count = fm_parse_cpus(words[2], cpus);
  spin_on(cpus, 1, alone_seconds, &alone);
  spin_on(cpus, cpu_count, together_seconds, together);

  const double ratio = alone.adds / alone.multiplies;
  double slowest = together[0].blocks / together[0].adds, starved = alone.starved;
  for (int i = 0; i < cpu_count; i++) {
    const double per_cycle = together[i].blocks / together[i].adds;
    if (per_cycle < slowest) slowest = per_cycle;
    if (together[i].starved > starved) starved = together[i].starved;
  }
  const double scaling = slowest / (alone.blocks / alone.adds);
  fm_reading(1, "clock", "Hz", &alone.adds, 1, "", "");
  fm_reading(0, "add_imul_ratio", "1", &ratio, 1, "", "");
  fm_reading(0, "scaling", "1", &scaling, 1, "", "");
  fm_reading(0, "starved_share", "1", &starved, 1, "", "");
  fm_end();
  return FM_OK;
}
