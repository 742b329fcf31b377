/* The command: the environment that it gets, and how it is started. */
#ifndef FLOWOS_INIT_COMMAND_H
#define FLOWOS_INIT_COMMAND_H

#include <sys/types.h>

#include "run_folder.h"

enum stage { ENV, CWD, EXEC, INTERPRETER, OWN };

struct failure {
  enum stage stage;
  int error; /* errno */
};

/* The whole environment of the command, from `env` and `passes`, or NULL and errno. It stays. */
char** read_environment(int folder);

/* Its process id, once it runs in its own process group with no signal blocked, to be killed when
 * this process dies. Or -1 and why not. */
pid_t start_command(const struct run_folder* folder, char** argv, char** variables,
                    struct failure* why);

#endif
