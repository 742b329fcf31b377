#define _GNU_SOURCE
#include "pump.h"

#include <errno.h>
#include <unistd.h>

#include "run_folder.h"

bool next_message(int fd, struct message* message, size_t* got) {
  ssize_t came = read_some(fd, (char*)message + *got, sizeof *message - *got);
  if (came > 0) *got += (size_t)came;
  if (*got < sizeof *message) return false;
  *got = 0;
  return true;
}

/* They are few and short: one that finds no room has no reader. */
void send_message(int fd, struct message message) {
  while (write(fd, &message, sizeof message) < 0 && errno == EINTR) continue;
}

bool is_empty(const struct pump* pump) { return pump->have == 0; }

struct pollfd waits_for(const struct pump* pump) {
  if (!is_empty(pump)) return (struct pollfd){pump->to, POLLOUT, 0};
  return (struct pollfd){pump->ended ? -1 : pump->from, POLLIN, 0};
}

static bool may_come_again(int error) { return error == EINTR || error == EAGAIN; }

static void take(struct pump* pump) {
  ssize_t got = read(pump->from, pump->data, sizeof pump->data);
  if ((got == 0 && !pump->is_port) || (got < 0 && !may_come_again(errno))) pump->ended = true;
  if (got <= 0) return;
  pump->at = 0;
  pump->have = (size_t)got;
  pump->taken += (size_t)got;
}

static void give(struct pump* pump) {
  size_t size = pump->max_bytes > 0 && pump->have > pump->max_bytes ? pump->max_bytes : pump->have;
  ssize_t put = pump->broken ? (ssize_t)size : write(pump->to, pump->data + pump->at, size);
  if (put < 0 && may_come_again(errno)) return;
  if (put < 0) {
    pump->broken = true;
    put = (ssize_t)size;
  }
  pump->at += (size_t)put;
  pump->have -= (size_t)put;
  pump->given += (size_t)put;
}

void pump_some(struct pump* pump, short ready) {
  if (ready == 0) return;
  if (is_empty(pump)) {
    if (!pump->ended) take(pump);
  } else {
    give(pump);
  }
}
