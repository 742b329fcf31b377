#define _GNU_SOURCE
#include "enter.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run_folder.h"

struct container {
  int user, mount, root;
};

static int open_of(long pid, const char* what) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%ld/%s", pid, what);
  return open(path, O_RDONLY | O_CLOEXEC);
}

static unsigned long long inode_of(int fd) {
  struct stat seen = {0};
  return fstat(fd, &seen) == 0 ? (unsigned long long)seen.st_ino : 0;
}

/* The kernel refuses to join the user namespace that one is in already. */
static bool is_own_user_namespace(int fd) {
  struct stat own = {0};
  return stat("/proc/self/ns/user", &own) == 0 && own.st_ino == inode_of(fd);
}

static int join(const struct container* c) {
  if (!is_own_user_namespace(c->user) && setns(c->user, CLONE_NEWUSER) != 0) return errno;
  if (setns(c->mount, CLONE_NEWNS) != 0) return errno;
  if (fchdir(c->root) != 0 || chroot(".") != 0) return errno;
  /* The rights in there that joining gave end with the exec of the command, for all but root. As in
   * the runtimes, none can be gained; and our files in /proc are to be read as before. */
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_DUMPABLE, 1) != 0) return errno;
  return 0;
}

static int enter_held_by(long pid, unsigned long long mount) {
  struct container c = {open_of(pid, "ns/user"), open_of(pid, "ns/mnt"), open_of(pid, "root")};
  int error = c.user < 0 || c.mount < 0 || c.root < 0 ? errno : 0;
  if (error == 0) error = inode_of(c.mount) == mount ? join(&c) : ESTALE;
  const int fds[] = {c.user, c.mount, c.root};
  for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
    if (fds[i] >= 0) close(fds[i]);
  return error;
}

static bool is_this_boot(const char* id) {
  char* own = read_file(AT_FDCWD, "/proc/sys/kernel/random/boot_id", NULL);
  bool same = own != NULL && strncmp(own, id, strcspn(own, "\n")) == 0;
  free(own);
  return same;
}

/* A line of `enter`. ESTALE where it is of another node. */
static int enter_by(char* line) {
  char* rest = line;
  long pid = strtol(line, &rest, 10);
  unsigned long long mount = strtoull(rest, &rest, 10);
  rest += strspn(rest, " ");
  return *rest == '\0' || is_this_boot(rest) ? enter_held_by(pid, mount) : ESTALE;
}

int enter_container(int folder) {
  char* text = read_file(folder, "enter", NULL);
  if (text == NULL) return errno == ENOENT ? 0 : errno;
  char* rest = NULL;
  int error = ESTALE;
  for (char* line = strtok_r(text, "\n", &rest); line != NULL && error != 0;
       line = strtok_r(NULL, "\n", &rest))
    error = enter_by(line);
  free(text);
  return error;
}
