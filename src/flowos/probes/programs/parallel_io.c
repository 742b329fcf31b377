/* Throughput of a file system for several clients, as IOR measures it by POSIX, so that the numbers
 * can be compared with its.
 *
 *   parallel_io --folder DIR [--clients 2] [--bytes B] [--transfer 1048576] [--files own]
 *               [--direct yes] [--stonewall 10] [--repetitions 3] [--seconds 10] [--stride 1]
 *
 * Each client writes B bytes to a file of its own (IOR -F), or all to one that they share, in
 * turns of a transfer each (IOR -b t -s B/t); then each reads what another one wrote (IOR -C). From
 * a barrier on each opens, moves its data, and closes; a write ends by fsync (IOR -e). The rate is
 * all bytes / (last end - first start). A client stops after STONEWALL seconds (IOR -D): then less
 * was written, and all of that is read.
 *
 * Without direct I/O the pages are dropped after the write, by posix_fadvise (DONTNEED): a hint,
 * which not every file system follows.
 *
 * Each 4 KiB carry their client, place and repetition, as IOR's do, and are compared as they come;
 * the last transfer whole. The rest is noise, which no storage compresses. A repetition begins if
 * SECONDS are likely to last for it; the first always does.
 *
 * Readings: bandwidth by workload, byte/s. Leaves no file behind, unless it fails: then FOLDER is
 * the caller's to clean. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/statvfs.h>

#include "flowos_clients.h"

enum { MAX_REPETITIONS = 100, ALIGNMENT = 4096, BLOCK_WORDS = 512, MAX_TRANSFER = 1 << 28 };
enum { WRITE, READ, WORKLOADS };

static const char *const kWorkloads[WORKLOADS] = {"sequential write", "sequential read"};

struct run {
  const char *folder;
  int clients, repetitions, own, direct, stride;
  long long bytes, transfer;
  double stonewall, seconds;
  char root[FM_PATH_BYTES / 2];
};

struct results {
  double rates[WORKLOADS][MAX_REPETITIONS];
  long long bytes; /* of all clients, in the last repetition */
};

/* --- data ------------------------------------------------------------------------------------ */

static uint64_t mixed(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/* The first word of a 4 KiB block of the data of a client, `at` bytes from their begin. */
static uint64_t stamp(int client, long long at, int repetition) {
  return mixed((uint64_t)at + ((uint64_t)client << 40) + ((uint64_t)repetition << 56) + 1);
}

static void make_noise(const struct run *run, int client, uint64_t *data) {
  for (long long i = 0; i < run->transfer / 8; i++)
    data[i] = mixed((uint64_t)i * 3 + (uint64_t)client);
}

static void put_stamps(const struct run *run, int client, long long at, int repetition,
                       uint64_t *data) {
  for (long long i = 0; i < run->transfer / 8; i += BLOCK_WORDS)
    data[i] = stamp(client, at + 8 * i, repetition);
}

static void check_stamps(const struct run *run, int client, long long at, int repetition,
                         const uint64_t *data) {
  for (long long i = 0; i < run->transfer / 8; i += BLOCK_WORDS)
    if (data[i] != stamp(client, at + 8 * i, repetition))
      fm_client_fail("wrong data came from client %d's byte %lld on", client, at + 8 * i);
}

static void check_whole(const struct run *run, int client, long long at, int repetition,
                        const uint64_t *data, uint64_t *expected) {
  make_noise(run, client, expected);
  put_stamps(run, client, at, repetition, expected);
  if (memcmp(data, expected, (size_t)run->transfer) != 0)
    fm_client_fail("wrong data came from client %d's byte %lld on", client, at);
}

static uint64_t *a_transfer(const struct run *run) {
  void *at = NULL;
  if (posix_memalign(&at, ALIGNMENT, (size_t)run->transfer)) fm_client_fail("no memory for data");
  return memset(at, 0, (size_t)run->transfer);
}

/* --- files ----------------------------------------------------------------------------------- */

static int opened(const struct run *run, int client, int flags) {
  char path[FM_PATH_BYTES];
  const int length = snprintf(path, sizeof path, "%s/data", run->root);
  if (run->own) snprintf(path + length, sizeof path - (size_t)length, ".%d", client);
  const int file = open(path, flags | (run->direct ? O_DIRECT : 0), 0664);
  if (file < 0 && errno == EINVAL && run->direct) fm_refused("open a file by direct I/O", errno);
  if (file < 0) fm_refused(flags & O_CREAT ? "create a file" : "open a file", errno);
  return file;
}

/* Where in the file a client's transfer lies. */
static off_t place_of(const struct run *run, int client, long long number) {
  return (off_t)((run->own ? number : number * run->clients + client) * run->transfer);
}

static void removed(const struct run *run) {
  char path[FM_PATH_BYTES];
  const int length = snprintf(path, sizeof path, "%s/data", run->root);
  if (run->own) snprintf(path + length, sizeof path - (size_t)length, ".%d", fm_client.number);
  if ((run->own || !fm_client.number) && unlink(path)) fm_refused("remove a file", errno);
}

static void moved(const struct run *run, int workload, int file, uint64_t *data, off_t at) {
  char *next = (char *)data;
  for (size_t left = (size_t)run->transfer; left;) {
    const ssize_t went =
        workload == WRITE ? pwrite(file, next, left, at) : pread(file, next, left, at);
    if (went < 0 && errno == EINTR) continue;
    if (went < 0) fm_refused(workload == WRITE ? "write a file" : "read a file", errno);
    if (went == 0) fm_client_fail("a file ends too early, at byte %lld", (long long)at);
    next += went, at += went, left -= (size_t)went;
  }
}

/* --- the phases ------------------------------------------------------------------------------- */

/* Writes `count` transfers of this client, or reads those of another; returns how many it did. */
static long long move_all(const struct run *run, int workload, int client, long long count,
                          int repetition, uint64_t *data, double end) {
  const int file = opened(run, client, workload == WRITE ? O_CREAT | O_RDWR : O_RDONLY);
  long long i = 0;
  for (; i < count && (i == 0 || workload == READ || fm_seconds() < end); i++) {
    const long long at = i * run->transfer;
    if (workload == WRITE) put_stamps(run, client, at, repetition, data);
    moved(run, workload, file, data, place_of(run, client, i));
    if (workload == READ) check_stamps(run, client, at, repetition, data);
  }
  if (workload == WRITE && fsync(file)) fm_refused("write a file (fsync)", errno);
  if (close(file)) fm_refused("close a file", errno);
  return i;
}

static void drop_pages(const struct run *run, int client) {
  if (run->direct) return;
  const int file = opened(run, client, O_RDONLY);
  const int error = posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
  if (error) fm_refused("drop the pages of a file", error);
  close(file);
}

static void repetition(const struct run *run, int number, uint64_t *data, struct results *results) {
  static struct fm_phase written, found;
  for (int workload = WRITE; workload < WORKLOADS; workload++) {
    const int client = workload == WRITE ? fm_client.number : fm_other(1, run->stride);
    const long long count =
        workload == WRITE ? run->bytes / run->transfer : (long long)written.parts[client].done;
    if (workload == WRITE) make_noise(run, client, data);
    fm_meet();
    struct fm_part mine = {.start = fm_seconds()};
    mine.done = move_all(run, workload, client, count, number, data, mine.start + run->stonewall);
    mine.end = fm_seconds();
    fm_together(mine, &found);
    results->rates[workload][number] = (double)(found.done * run->transfer) / found.seconds;
    if (workload == READ) {
      uint64_t *const expected = a_transfer(run);
      check_whole(run, client, (mine.done - 1) * run->transfer, number, data, expected);
      free(expected);
      continue;
    }
    written = found;
    results->bytes = (long long)found.done * run->transfer;
    drop_pages(run, fm_client.number);
    fm_meet(); /* a reader drops what its own node holds */
    drop_pages(run, fm_other(1, run->stride));
  }
  fm_meet();
  removed(run);
}

static void print_all(const struct results *results, int repetitions) {
  char levels[64], notes[64];
  snprintf(notes, sizeof notes, "\"moved_bytes\": \"%lld\"", results->bytes);
  for (int workload = 0; workload < WORKLOADS; workload++) {
    snprintf(levels, sizeof levels, "\"workload\": \"%s\"", kWorkloads[workload]);
    fm_reading(workload == 0, "bandwidth", "byte/s", results->rates[workload], repetitions, levels,
               notes);
  }
  fm_end();
}

static void measure(void *shared) {
  const struct run *const run = shared;
  static struct results results;
  static struct fm_phase all;
  uint64_t *const data = a_transfer(run);
  const double begin = fm_seconds();
  int number = 0;
  double spent = 0;
  do {
    repetition(run, number++, data, &results);
    fm_together((struct fm_part){begin, fm_seconds(), 0}, &all); /* the same for all clients */
    spent = all.seconds;
  } while (number < run->repetitions && spent * (number + 1) / number < run->seconds);
  free(data);
  if (fm_client.number) return;
  if (rmdir(run->root)) fm_refused("remove a folder", errno);
  print_all(&results, number);
}

static void prepare(void *shared) {
  struct run *const run = shared;
  struct statvfs room;
  fm_make_folder(run->folder, "parallel-io", run->root);
  if (fm_client.number || statvfs(run->root, &room)) return;
  if ((double)room.f_bavail * (double)room.f_frsize >= (double)run->bytes * run->clients) return;
  rmdir(run->root);
  fm_refused("write so much", ENOSPC);
}

int main(int count, char **words) {
  static struct run run;
  const char *files = "own", *direct = "yes";
  double clients = 2, bytes = 256 << 20, transfer = 1 << 20, stonewall = 10, repetitions = 3;
  double seconds = 10, stride = 1;
  const struct fm_option options[] = {
      {"--folder", NULL, &run.folder, {0}},
      {"--clients", &clients, NULL, {0}},
      {"--bytes", &bytes, NULL, {0}},
      {"--transfer", &transfer, NULL, {0}},
      {"--files", NULL, &files, {"own", "shared"}},
      {"--direct", NULL, &direct, {"yes", "no"}},
      {"--stonewall", &stonewall, NULL, {0}},
      {"--repetitions", &repetitions, NULL, {0}},
      {"--seconds", &seconds, NULL, {0}},
      {"--stride", &stride, NULL, {0}},
  };
#ifdef FLOWOS_MPI
  MPI_Init(&count, &words);
#endif
  fm_client.program = "parallel_io";
  fm_read_options(options, sizeof options / sizeof options[0], count, words);
  if (!run.folder || !fm_is_whole(clients, 1, FM_MAX_CLIENTS) ||
      !fm_is_whole(transfer / ALIGNMENT, 1, (double)MAX_TRANSFER / ALIGNMENT) ||
      !fm_is_whole(bytes / transfer, 1, (double)(1L << 40) / transfer) ||
      !fm_is_whole(repetitions, 1, MAX_REPETITIONS) || !fm_is_whole(stride, 1, FM_MAX_CLIENTS) ||
      !(stonewall > 0) || !(seconds > 0))
    fm_fail(
        "parallel_io: usage: parallel_io --folder DIR [--clients 1..%d] [--bytes B, whole "
        "transfers] [--transfer T, times %d, up to %d] [--files own|shared] [--direct yes|no] "
        "[--stonewall S] [--repetitions 1..%d] [--seconds S] [--stride N]",
        FM_MAX_CLIENTS, ALIGNMENT, MAX_TRANSFER, MAX_REPETITIONS);
  run.clients = (int)clients, run.repetitions = (int)repetitions, run.stride = (int)stride;
  run.bytes = (long long)bytes, run.transfer = (long long)transfer;
  run.stonewall = stonewall, run.seconds = seconds;
  run.own = !strcmp(files, "own"), run.direct = !strcmp(direct, "yes");
  return fm_clients_run(run.clients, prepare, measure, &run);
}
