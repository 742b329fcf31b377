/* The files of RUNDIR (flowos-init.c says what is in them). */
#ifndef FLOWOS_INIT_RUN_FOLDER_H
#define FLOWOS_INIT_RUN_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "node_times.h"
#include "relay.h"

struct run_folder {
  int fd;
  unsigned long rank; /* which started.RANK and status.RANK are ours */
  char* launch;       /* the file of that name */
  size_t launch_size;
};

/* Which rank the launcher made us; 0 without one. */
unsigned long own_rank(void);

/* read() that is not put off by a signal. */
ssize_t read_some(int fd, void* to, size_t max_bytes);

/* The whole file, with a NUL behind it, or NULL and errno. To be freed. `size` may be NULL. */
char* read_file(int folder, const char* name, size_t* size);

/* Reads `launch`, which stays. Returns errno. */
int open_launch(struct run_folder* folder);

/* Of `launch`, with a NUL behind it, or NULL if it has no such part. `size` may be NULL. */
char* part_of(const struct run_folder* folder, const char* name, size_t* size);

/* Readers of what is published see the whole file or none. A failure to write is
 * reported on stderr: there is no better place. True if it is there. */
void publish_started(const struct run_folder* folder, pid_t init, pid_t command);
void take_back_started(const struct run_folder* folder);
bool publish_status(const struct run_folder* folder, const char* end, bool stopped,
                    double began_seconds, double ended_seconds, struct node_times meanwhile,
                    struct progress said);

#endif
