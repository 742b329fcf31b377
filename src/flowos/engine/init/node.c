#define _GNU_SOURCE
#include "node.h"

#include <fcntl.h>
#include <linux/loop.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "initrd.h"
#include "run_folder.h"

enum { READ_SECONDS = 60 };

static const char image[] = "/image.squashfs";

int is_node(void) { return access(image, F_OK) == 0; }

/* The name of a loop device on which the image lies. */
static char* attach_image(void) {
  static char device[32];
  int control = open_when_there("/dev/loop-control", O_RDWR);
  int file = open(image, O_RDONLY | O_CLOEXEC); /* so that the device is read-only, too */
  snprintf(device, sizeof device, "/dev/loop%d", ioctl(control, LOOP_CTL_GET_FREE));
  int loop = open_when_there(device, O_RDONLY);
  if (ioctl(loop, LOOP_SET_FD, file) != 0) give_up("cannot attach", image);
  close(loop);
  close(file);
  close(control);
  return device;
}

/* The last init= among the kernel's parameters, as the kernel reads them itself. */
static char* first_program(void) {
  char* found = "/sbin/init";
  char* line = read_file(AT_FDCWD, "/proc/cmdline", NULL);
  for (char* word = line != NULL ? strtok(line, " \n") : NULL; word != NULL;
       word = strtok(NULL, " \n")) {
    if (strcmp(word, "--") == 0) break;
    if (strncmp(word, "init=", strlen("init=")) == 0) found = word + strlen("init=");
  }
  return found;
}

_Noreturn void be_node(char** argv) {
  wait_before_restart(READ_SECONDS);
  mount_own();
  fill_streams("/dev/console");
  fill_streams("/dev/null");
  load_modules();
  unlink("/init");
  enter_image(attach_image());
  argv[0] = first_program();
  execv(argv[0], argv);
  give_up("cannot start", argv[0]);
}
