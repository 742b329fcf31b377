#define _GNU_SOURCE
#include "initrd.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LOOKS = 10000, LOOK_MICROSECONDS = 1000 };

static unsigned seconds_before_restart;

int is_first_process(const char* name) { return getpid() == 1 && strcmp(name, "/init") == 0; }

void wait_before_restart(unsigned seconds) { seconds_before_restart = seconds; }

/* Of a guest, the kernel's log is what boot() prints when it ends. */
_Noreturn void give_up(const char* what, const char* name) {
  int log = open("/dev/kmsg", O_WRONLY);
  if (log >= 0) dprintf(log, "<2>flowos: %s %s: %s\n", what, name, strerror(errno));
  sleep(seconds_before_restart);
  reboot(RB_AUTOBOOT);
  for (;;) pause();
}

void must_mount(const char* source, const char* target, const char* type, unsigned long flags,
                const char* options) {
  if (mount(source, target, type, flags, options) != 0) give_up("cannot mount", target);
}

void mount_own(void) {
  for (const char* const* name =
           (const char* const[]){"/proc", "/sys", "/dev", "/image", "/over", "/root", NULL};
       *name != NULL; name++)
    mkdir(*name, S_IRWXU | S_IRGRP | S_IXGRP | S_IROTH | S_IXOTH);
  must_mount("proc", "/proc", "proc", 0, NULL);
  must_mount("sys", "/sys", "sysfs", 0, NULL);
  must_mount("dev", "/dev", "devtmpfs", 0, NULL);
}

void fill_streams(const char* name) {
  int fd = -1;
  do fd = open(name, O_RDWR | O_NOCTTY);
  while (fd >= 0 && fd < STDERR_FILENO);
  if (fd > STDERR_FILENO) close(fd);
}

void load_modules(void) {
  glob_t found;
  if (glob("/modules/*.ko", 0, NULL, &found) != 0) return;
  for (size_t i = 0; i < found.gl_pathc; i++) {
    int file = open(found.gl_pathv[i], O_RDONLY | O_CLOEXEC);
    if (syscall(SYS_finit_module, file, "", 0) != 0 && errno != EEXIST)
      give_up("cannot load", found.gl_pathv[i]);
    close(file);
    unlink(found.gl_pathv[i]);
  }
  globfree(&found);
}

int open_when_there(const char* pattern, int flags) {
  for (int look = 0; look < LOOKS; look++) {
    glob_t found;
    int fd = -1;
    if (glob(pattern, 0, NULL, &found) == 0) fd = open(found.gl_pathv[0], flags | O_CLOEXEC);
    globfree(&found);
    if (fd >= 0) return fd;
    usleep(LOOK_MICROSECONDS);
  }
  give_up("no device", pattern);
}

void enter_image(const char* device) {
  static const char* const kept[] = {"/proc", "/sys", "/dev"};
  char inside[32];
  must_mount(device, "/image", "squashfs", MS_RDONLY, NULL);
  must_mount("over", "/over", "tmpfs", 0, "mode=755");
  mkdir("/over/upper", S_IRWXU | S_IRGRP | S_IXGRP | S_IROTH | S_IXOTH);
  mkdir("/over/work", S_IRWXU);
  must_mount("root", "/root", "overlay", 0,
             "lowerdir=/image,upperdir=/over/upper,workdir=/over/work");
  for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
    snprintf(inside, sizeof inside, "/root%s", kept[i]);
    mkdir(inside, S_IRWXU | S_IRGRP | S_IXGRP | S_IROTH | S_IXOTH);
    must_mount(kept[i], inside, NULL, MS_MOVE, NULL);
  }
  /* not by chroot() alone: in one no process may make a user namespace */
  if (chdir("/root") != 0 || mount(".", "/", NULL, MS_MOVE, NULL) != 0 || chroot(".") != 0 ||
      chdir("/") != 0)
    give_up("cannot enter", "the image");
}
