/* Metadata operations of a file system: files and directories are created, asked for, opened and
 * removed by several clients, as mdtest does it, so that the numbers can be compared with its.
 *
 *   metadata --folder DIR [--processes 2] [--items 2000] [--directory unique] [--bytes 0]
 *            [--stonewall 1] [--repetitions 3] [--seconds 6] [--stride 1]
 *
 * Each client makes ITEMS files, then ITEMS directories, in one directory that all share or in one
 * of its own (unique, mdtest -u); none after STONEWALL seconds (mdtest -W). Each phase begins with
 * a barrier; its rate is all items / (last end - first start). A file has BYTES bytes (mdtest -w),
 * written when it is made; to read it is to open it, read them, and close it (mdtest -e). All but
 * the first phase are of another client's items (mdtest -N STRIDE).
 *
 * Outside of what is timed, directories are listed: each item is there, once, after it was made,
 * and none after all were removed. Types, sizes and contents are looked at in the phases. A
 * repetition begins if SECONDS are likely to last for it; the first always does.
 *
 * Readings: iops by operation, 1/s. Leaves no file behind, unless it fails: then FOLDER is the
 * caller's to clean. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <sys/statvfs.h>

#include "flowos_clients.h"

enum { MAX_REPETITIONS = 100, MAX_BYTES = 1 << 20, PHASES = 4, KINDS = 2 };
enum { FILES, DIRECTORIES };
enum { CREATE, STAT, READ, REMOVE };

static const char *const kKinds[KINDS] = {"file", "directory"};
static const char *const kPhases[PHASES] = {"create", "stat", "read", "remove"};
static const char *const kNames[KINDS] = {"file", "dir"};

struct run {
  const char *folder;
  int processes, repetitions, unique, stride;
  long items, bytes;
  double stonewall, seconds;
  char root[FM_PATH_BYTES / 2];
};

/* rates[kind][phase][repetition]; items: made by all clients in the last one */
struct results {
  double rates[KINDS][PHASES][MAX_REPETITIONS];
  long long items[KINDS];
};

/* What one item costs is little more than the system call: the path is made in place. */
struct path {
  char text[FM_PATH_BYTES];
  char *number;
};

static void directory_of(const struct run *run, int client, char *path) {
  if (run->unique)
    snprintf(path, FM_PATH_BYTES, "%s/tree.%d", run->root, client);
  else
    snprintf(path, FM_PATH_BYTES, "%s/tree", run->root);
}

static void path_of(const struct run *run, int kind, int client, struct path *path) {
  directory_of(run, client, path->text);
  char *const end = path->text + strlen(path->text);
  path->number = end + sprintf(end, "/%s.%d.", kNames[kind], client);
}

static const char *numbered(struct path *path, long number) {
  char digits[24];
  int count = 0;
  do digits[count++] = (char)('0' + number % 10);
  while (number /= 10);
  char *at = path->number;
  while (count) *at++ = digits[--count];
  *at = '\0';
  return path->text;
}

static void fill(const struct run *run, int client, long number, char *content) {
  for (long i = 0; i < run->bytes; i++)
    content[i] = (char)(client * 101L + number * 7 + i * 31 + 1);
}

/* --- the phases ----------------------------------------------------------------------------- */

static void create(const struct run *run, int kind, const char *path, long number, char *content) {
  if (kind == DIRECTORIES) {
    if (mkdir(path, 0755)) fm_refused("make a directory", errno);
    return;
  }
  const int file = open(path, O_CREAT | O_RDWR, 0664);
  if (file < 0) fm_refused("create a file", errno);
  if (run->bytes) {
    fill(run, fm_client.number, number, content);
    const ssize_t moved = write(file, content, (size_t)run->bytes);
    if (moved != run->bytes) fm_refused("write a file", moved < 0 ? errno : ENOSPC);
  }
  if (close(file)) fm_refused("close a file", errno);
}

static void look(const struct run *run, int kind, const char *path) {
  struct stat found;
  if (stat(path, &found)) fm_refused("find what was made", errno);
  if (kind == DIRECTORIES ? !S_ISDIR(found.st_mode)
                          : !S_ISREG(found.st_mode) || found.st_size != run->bytes)
    fm_client_fail("a %s is not as it was made: %s", kKinds[kind], path);
}

static void read_one(const struct run *run, const char *path, int client, long number,
                     char *content) {
  const int file = open(path, O_RDONLY);
  if (file < 0) fm_refused("open a file", errno);
  if (run->bytes) {
    char *const expected = content + MAX_BYTES;
    const ssize_t moved = read(file, content, (size_t)run->bytes);
    if (moved < 0) fm_refused("read a file", errno);
    fill(run, client, number, expected);
    if (moved != run->bytes || memcmp(content, expected, (size_t)moved) != 0)
      fm_client_fail("wrong data came from %s", path);
  }
  close(file);
}

static void remove_one(int kind, const char *path) {
  if (kind == DIRECTORIES ? rmdir(path) : unlink(path)) fm_refused("remove what was made", errno);
}

/* Of `count` items of this client. Returns how many were done before the stonewall. */
static long do_items(const struct run *run, int kind, int phase, int client, long count,
                     double end) {
  static char content[2 * MAX_BYTES];
  struct path path;
  path_of(run, kind, client, &path);
  for (long i = 0; i < count; i++) {
    const char *const at = numbered(&path, i);
    if (phase == CREATE) {
      if (i && fm_seconds() > end) return i;
      create(run, kind, at, i, content);
    } else if (phase == STAT)
      look(run, kind, at);
    else if (phase == READ)
      read_one(run, at, client, i, content);
    else
      remove_one(kind, at);
  }
  return count;
}

/* --- what is there --------------------------------------------------------------------------- */

/* How many items of this kind a directory holds; each has a name of its own. */
static long listed(const char *path, const char *name) {
  DIR *const directory = opendir(path);
  if (!directory) fm_refused("list a directory", errno);
  const size_t length = strlen(name);
  long count = 0;
  errno = 0;
  for (struct dirent *entry; (entry = readdir(directory)); errno = 0)
    count += !strncmp(entry->d_name, name, length) && entry->d_name[length] == '.';
  if (errno) fm_refused("list a directory", errno);
  closedir(directory);
  return count;
}

/* Checks that the items are there, or gone. */
static void check_count(const struct run *run, int kind, const struct fm_phase *made, int are) {
  char path[FM_PATH_BYTES];
  if (!run->unique && fm_client.number) return;
  const int owner = run->unique ? fm_other(1, run->stride) : 0;
  directory_of(run, owner, path);
  const long long expected = are ? run->unique ? made->parts[owner].done : made->done : 0;
  const long found = listed(path, kNames[kind]);
  if (found != expected)
    fm_client_fail("%lld entries of kind %s expected, %ld found", expected, kKinds[kind], found);
}

/* --- repetitions ----------------------------------------------------------------------------- */

static void phase_of(const struct run *run, int kind, int phase, const struct fm_phase *made,
                     struct fm_phase *found) {
  const int client = phase == CREATE ? fm_client.number : fm_other(phase, run->stride);
  const long count = phase == CREATE ? run->items : (long)made->parts[client].done;
  fm_meet();
  struct fm_part mine = {.start = fm_seconds()};
  mine.done = do_items(run, kind, phase, client, count, mine.start + run->stonewall);
  mine.end = fm_seconds();
  fm_together(mine, found);
}

static void phases_of(const struct run *run, int kind, int number, struct results *results) {
  static struct fm_phase made, found;
  for (int phase = 0; phase < PHASES; phase++) {
    if (kind == DIRECTORIES && phase == READ) continue;
    struct fm_phase *const done = phase == CREATE ? &made : &found;
    phase_of(run, kind, phase, &made, done);
    results->rates[kind][phase][number] = (double)done->done / done->seconds;
    if (phase == CREATE) check_count(run, kind, &made, 1);
  }
  fm_meet();
  check_count(run, kind, &made, 0);
  results->items[kind] = (long long)made.done;
}

static void repetition(const struct run *run, int number, struct results *results) {
  char path[FM_PATH_BYTES];
  const int mine = run->unique || fm_client.number == 0;
  directory_of(run, fm_client.number, path);
  if (mine && mkdir(path, 0755)) fm_refused("make a directory", errno);
  phases_of(run, FILES, number, results);
  phases_of(run, DIRECTORIES, number, results);
  fm_meet(); /* the directories are listed */
  if (mine && rmdir(path)) fm_refused("remove a directory", errno);
}

static void print_all(const struct results *results, int repetitions) {
  char levels[64], notes[64];
  int first = 1;
  for (int kind = 0; kind < KINDS; kind++)
    for (int phase = 0; phase < PHASES; phase++) {
      if (kind == DIRECTORIES && phase == READ) continue;
      snprintf(levels, sizeof levels, "\"operation\": \"%s %s\"", kKinds[kind], kPhases[phase]);
      snprintf(notes, sizeof notes, "\"made\": \"%lld\"", results->items[kind]);
      fm_reading(first, "iops", "1/s", results->rates[kind][phase], repetitions, levels, notes);
      first = 0;
    }
  fm_end();
}

static void measure(void *shared) {
  const struct run *const run = shared;
  static struct results results;
  static struct fm_phase all;
  const double begin = fm_seconds();
  int number = 0;
  double spent = 0;
  do {
    repetition(run, number++, &results);
    fm_together((struct fm_part){begin, fm_seconds(), 0}, &all); /* the same for all clients */
    spent = all.seconds;
  } while (number < run->repetitions && spent * (number + 1) / number < run->seconds);
  if (fm_client.number) return;
  if (rmdir(run->root)) fm_refused("remove a folder", errno);
  print_all(&results, number);
}

static void prepare(void *shared) {
  struct run *const run = shared;
  struct statvfs room;
  fm_make_folder(run->folder, "metadata", run->root);
  if (fm_client.number || statvfs(run->root, &room) || !room.f_files)
    return; /* it does not count them */
  if (room.f_favail / 2 >= (fsfilcnt_t)run->items * (fsfilcnt_t)run->processes) return;
  rmdir(run->root);
  fm_refused("create so many files, which would take more than half of those left", ENOSPC);
}

int main(int count, char **words) {
  static struct run run;
  const char *directory = "unique";
  double processes = 2, items = 2000, bytes = 0, stonewall = 1, repetitions = 3, seconds = 6;
  double stride = 1;
  const struct fm_option options[] = {
      {"--folder", NULL, &run.folder, {0}},
      {"--processes", &processes, NULL, {0}},
      {"--items", &items, NULL, {0}},
      {"--directory", NULL, &directory, {"unique", "shared"}},
      {"--bytes", &bytes, NULL, {0}},
      {"--stonewall", &stonewall, NULL, {0}},
      {"--repetitions", &repetitions, NULL, {0}},
      {"--seconds", &seconds, NULL, {0}},
      {"--stride", &stride, NULL, {0}},
  };
#ifdef FLOWOS_MPI
  MPI_Init(&count, &words);
#endif
  fm_client.program = "metadata";
  fm_read_options(options, sizeof options / sizeof options[0], count, words);
  if (!run.folder || !fm_is_whole(processes, 1, FM_MAX_CLIENTS) || !fm_is_whole(items, 1, 1e9) ||
      !fm_is_whole(bytes, 0, MAX_BYTES) || !fm_is_whole(repetitions, 1, MAX_REPETITIONS) ||
      !fm_is_whole(stride, 1, FM_MAX_CLIENTS) || !(stonewall > 0) || !(seconds > 0))
    fm_fail(
        "metadata: usage: metadata --folder DIR [--processes 1..%d] [--items N] [--directory "
        "unique|shared] [--bytes 0..%d] [--stonewall S] [--repetitions 1..%d] [--seconds S] "
        "[--stride N]",
        FM_MAX_CLIENTS, MAX_BYTES, MAX_REPETITIONS);
  run.processes = (int)processes, run.repetitions = (int)repetitions, run.stride = (int)stride;
  run.items = (long)items, run.bytes = (long)bytes;
  run.stonewall = stonewall, run.seconds = seconds;
  run.unique = !strcmp(directory, "unique");
  return fm_clients_run(run.processes, prepare, measure, &run);
}
