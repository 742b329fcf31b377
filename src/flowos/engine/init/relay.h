/* What a worker says over its own connection, and what is left of it when it dies. */
#ifndef FLOWOS_INIT_RELAY_H
#define FLOWOS_INIT_RELAY_H

#include <stdbool.h>

/* Of a command that sends on itself what it and its children print: it reads that from pipes of
 * which we hold the reading ends too. -1: there is none. */
struct relay {
  int page; /* a memory file: which step it began last, of how many runs */
  int readers[2], writers[2];
};

/* There is none. */
struct relay no_relay(void);

/* Returns errno. */
int open_relay(struct relay* relay);

/* In the child: the command prints into the pipes, and has the page and the reading ends as
 * descriptors 3, 4 and 5. `keep` is moved out of the way. Returns errno. */
int take_relay(const struct relay* relay, int* keep, int count);

struct progress {
  unsigned long long begun, runs;
};

/* The command and its children are gone: what is left in the pipes goes to our own streams.
 * Returns what the page says. */
struct progress close_relay(struct relay* relay);

#endif
