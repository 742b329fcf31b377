#define _GNU_SOURCE
#include "relay.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#include "run_folder.h"

enum { PAGE_FD = 3, READER_FD = 4, FIRST_FREE_FD = 16, PAGE_BYTES = 4096 };

/* So high that no descriptor of ours lies where the command is given its own. */
static int moved_up(int fd) {
  if (fd < 0) return fd;
  int moved = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_FREE_FD);
  close(fd);
  return moved;
}

static bool open_stream(struct relay* relay, int stream) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  relay->readers[stream] = moved_up(ends[0]);
  relay->writers[stream] = moved_up(ends[1]);
  return relay->readers[stream] >= 0 && relay->writers[stream] >= 0 &&
         fcntl(relay->readers[stream], F_SETFL, O_NONBLOCK) == 0;
}

struct relay no_relay(void) { return (struct relay){-1, {-1, -1}, {-1, -1}}; }

int open_relay(struct relay* relay) {
  relay->page = moved_up(memfd_create("flowos-progress", MFD_CLOEXEC));
  if (relay->page < 0 || ftruncate(relay->page, PAGE_BYTES) != 0) return errno;
  return open_stream(relay, 0) && open_stream(relay, 1) ? 0 : errno;
}

int take_relay(const struct relay* relay, int* keep, int count) {
  if (relay->page < 0) return 0;
  for (int i = 0; i < count; i++) {
    keep[i] = fcntl(keep[i], F_DUPFD_CLOEXEC, FIRST_FREE_FD);
    if (keep[i] < 0) return errno;
  }
  bool good = dup2(relay->page, PAGE_FD) >= 0;
  for (int stream = 0; stream < 2; stream++)
    good = good && dup2(relay->writers[stream], STDOUT_FILENO + stream) >= 0 &&
           dup2(relay->readers[stream], READER_FD + stream) >= 0;
  return good ? 0 : errno;
}

static void pass_on(int from, int to) {
  char bytes[4096];
  for (ssize_t got; (got = read_some(from, bytes, sizeof bytes)) > 0;)
    for (ssize_t at = 0, put; at < got; at += put) {
      put = write(to, bytes + at, (size_t)(got - at));
      if (put < 0) return;
    }
}

struct progress close_relay(struct relay* relay) {
  struct progress said = {0, 0};
  if (relay->page < 0) return said;
  if (pread(relay->page, &said, sizeof said, 0) != (ssize_t)sizeof said) said.runs = 0;
  for (int stream = 0; stream < 2; stream++) {
    pass_on(relay->readers[stream], STDOUT_FILENO + stream);
    close(relay->readers[stream]);
    close(relay->writers[stream]);
  }
  close(relay->page);
  relay->page = -1;
  return said;
}
