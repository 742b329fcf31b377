/* Turns of programs that run side by side: one works, the others sleep.
 *
 * Where FLOWOS_TURNS names a socket, fm_turn() says there that the process waits (a byte), and
 * returns when it may go on (a byte back): what it does until it calls again, or ends, is its turn.
 * Every rank of an MPI program takes part. Without the variable it is always its turn. */
#ifndef FLOWOS_TURNS_H
#define FLOWOS_TURNS_H

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "flowos_measure.h"

static inline int fm_takes_turns(void) { return getenv("FLOWOS_TURNS") != NULL; }

static inline int fm_turns_socket(void) {
  const char *const path = getenv("FLOWOS_TURNS");
  struct sockaddr_un at = {.sun_family = AF_UNIX};
  if (snprintf(at.sun_path, sizeof at.sun_path, "%s", path) >= (int)sizeof at.sun_path)
    fm_fail("FLOWOS_TURNS=%s: too long a path", path);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || connect(fd, (const struct sockaddr *)&at, sizeof at))
    fm_fail("FLOWOS_TURNS=%s: nobody gives turns there", path);
  return fd;
}

static inline void fm_turn(void) {
  static int fd = -1;
  char byte = 0;
  if (!fm_takes_turns()) return;
  if (fd < 0) fd = fm_turns_socket();
  if (send(fd, &byte, 1, MSG_NOSIGNAL) != 1 || read(fd, &byte, 1) != 1)
    fm_fail("whoever gave the turns is gone");
}

#endif
