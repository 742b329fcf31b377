#define _GNU_SOURCE
#include "descriptors.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { STREAMS = 3 };

int take_streams(void) {
  for (int fd = 0; fd < STREAMS; fd++)
    if (dup2(STREAMS + fd, fd) < 0 || close(STREAMS + fd) != 0) return errno;
  return 0;
}

/* Runtimes leak descriptors into what they run (ch-run the FUSE connection of its image, which
 * would then outlive it). */
void close_inherited(int folder) {
#ifdef SYS_close_range /* Linux 5.9 */
  if (folder > 3) syscall(SYS_close_range, 3U, (unsigned)folder - 1, 0U);
  syscall(SYS_close_range, (unsigned)folder + 1, ~0U, 0U);
#endif
}
