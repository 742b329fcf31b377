/* The command: the environment that it gets, and how it is started. */
#ifndef FLOWOS_INIT_COMMAND_H
#define FLOWOS_INIT_COMMAND_H

#include <stdbool.h>
#include <sys/types.h>

#include "relay.h"
#include "run_folder.h"

enum stage { ENV, CWD, EXEC, INTERPRETER, OWN, ENTER };

struct failure {
  enum stage stage;
  int error; /* errno */
};

/* The whole environment of the command, from `env` and `env_forwarded`. NULL: errno. It stays. */
char** read_environment(const struct run_folder* folder);

/* The command: from `argv` if that is there, else what was given. NULL and errno. It stays. */
char** read_words(const struct run_folder* folder, char** given);

/* How the command stands to a terminal. */
struct job {
  pid_t group;   /* the process group that it joins; 0: it leads its own */
  bool terminal; /* leading its own, it is the one that the terminal listens to */
};

/* Its process id, once it runs in its process group with no signal blocked, to be killed when this
 * process dies. Or -1 and why not. */
pid_t start_command(const struct run_folder* folder, struct job job, const struct relay* relay,
                    char** argv, char** variables, struct failure* why);

#endif
