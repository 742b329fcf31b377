#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "boot.h"
#include "flowos-init.h"
#include "guest.h"
#include "initrd.h"
#include "node.h"
#include "overlay.h"

enum { OWN_FAILURE = 125 };

int main(int argc, char** argv) {
  if (is_first_process(argv[0])) {
    if (is_node()) be_node(argv);
    be_guest(run_command);
  }
  if (argc == 2 && strcmp(argv[1], "--version") == 0) {
    puts("flowos-init 1");
    return 0;
  }
  if (argc == 2 && strcmp(argv[1], "--hold") == 0) /* a container, as its command */
    for (;;) pause();
  if (argc > 2 && strcmp(argv[1], "--boot") == 0) return boot(argv + 2);
  if (argc > 4 && strcmp(argv[1], "--overlay") == 0 && strcmp(argv[3], "--") == 0)
    return enter_overlay(argv[2], argv + 4);
  if (argc < 4 || strcmp(argv[2], "--") != 0) {
    fputs("usage: flowos-init RUNDIR -- COMMAND [ARG...]\n", stderr);
    return OWN_FAILURE;
  }
  return run_command(argv);
}
