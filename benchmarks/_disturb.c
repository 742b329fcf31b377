/* Planted disturbers, and a short piece of work to be disturbed.
 *
 *   _disturb spin          keeps a cpu busy
 *   _disturb hog           copies 128 MiB to and fro: memory bandwidth
 *   _disturb scan FILE     reads the file from its disk, again and again
 *   _disturb work UNITS    sums 4 MiB UNITS times, seven times over; prints the seconds of each
 *   _disturb reads UNITS FILE   reads UNITS x 64 blocks of 4 KiB here and there, seven times over;
 *                               prints the seconds of each
 *
 * spin, hog and scan end with the process that started them. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { HOG_BYTES = 64 << 20, WORK_WORDS = 1 << 19, REPETITIONS = 7 };
enum { SCAN_BYTES = 1 << 20, BLOCK_BYTES = 4096, BLOCKS_A_UNIT = 64 };

static double seconds_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC_RAW, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *memory(size_t bytes) {
  void *at = malloc(bytes);
  if (!at) {
    fprintf(stderr, "no memory for %zu bytes\n", bytes);
    exit(1);
  }
  return memset(at, 1, bytes);
}

static void spin(void) {
  for (volatile uint64_t count = 0;; count++) {
  }
}

static void hog(void) {
  char *here = memory(HOG_BYTES), *there = memory(HOG_BYTES);
  for (;;) {
    memcpy(there, here, HOG_BYTES);
    memcpy(here, there, HOG_BYTES);
    __asm__ volatile("" ::"r"(here), "r"(there) : "memory");
  }
}

static int work(long units) {
  const uint64_t *words = memory(WORK_WORDS * sizeof *words);
  const uint64_t once = (uint64_t)WORK_WORDS * 0x0101010101010101u;
  for (int repetition = 0; repetition < REPETITIONS; repetition++) {
    uint64_t sum = 0;
    const double start = seconds_now();
    for (long unit = 0; unit < units; unit++) {
      for (int i = 0; i < WORK_WORDS; i++) sum += words[i];
      __asm__ volatile("" : "+r"(sum)::"memory");
    }
    printf("%.9f\n", seconds_now() - start);
    if (sum != once * (uint64_t)units) return fputs("the sum is wrong\n", stderr), 1;
  }
  return 0;
}

struct file {
  int fd;
  off_t bytes;
  char *block;
};

/* Past the page cache. */
static struct file opened(const char *path) {
  struct stat about;
  struct file file = {.fd = open(path, O_RDONLY | O_DIRECT)};
  if (file.fd < 0 || fstat(file.fd, &about) || about.st_size < SCAN_BYTES ||
      posix_memalign((void **)&file.block, BLOCK_BYTES, SCAN_BYTES)) {
    fprintf(stderr, "%s: give a file of 1 MiB or more, where O_DIRECT works\n", path);
    exit(1);
  }
  file.bytes = about.st_size;
  return file;
}

static void read_at(const struct file *file, size_t bytes, off_t at) {
  if (pread(file->fd, file->block, bytes, at) != (ssize_t)bytes) {
    perror("pread");
    exit(1);
  }
}

static void scan(const char *path) {
  const struct file file = opened(path);
  for (off_t at = 0;; at = at + 2 * SCAN_BYTES <= file.bytes ? at + SCAN_BYTES : 0)
    read_at(&file, SCAN_BYTES, at);
}

static int reads(long units, const char *path) {
  const struct file file = opened(path);
  const uint64_t blocks = (uint64_t)file.bytes / BLOCK_BYTES;
  uint64_t drawn = 1;
  for (int repetition = 0; repetition < REPETITIONS; repetition++) {
    const double start = seconds_now();
    for (long i = 0; i < units * BLOCKS_A_UNIT; i++) {
      drawn = drawn * 6364136223846793005u + 1442695040888963407u;
      read_at(&file, BLOCK_BYTES, (off_t)((drawn >> 33) % blocks) * BLOCK_BYTES);
    }
    printf("%.9f\n", seconds_now() - start);
  }
  return 0;
}

int main(int count, char **arguments) {
  const char *what = count > 1 ? arguments[1] : "";
  if (!strcmp(what, "work") && count == 3) return work(atol(arguments[2]));
  if (!strcmp(what, "reads") && count == 4) return reads(atol(arguments[2]), arguments[3]);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (!strcmp(what, "spin")) spin();
  if (!strcmp(what, "hog")) hog();
  if (!strcmp(what, "scan") && count == 3) scan(arguments[2]);
  fputs("usage: _disturb spin | hog | scan FILE | work UNITS | reads UNITS FILE\n", stderr);
  return 2;
}
