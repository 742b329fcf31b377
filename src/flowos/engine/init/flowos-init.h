/* The life of a command between a launcher or runtime and its end; flowos-init.c says how. */
#ifndef FLOWOS_INIT_H
#define FLOWOS_INIT_H

/* argv: a word, RUNDIR, --, COMMAND [ARG...]. Returns the exit code. */
int run_command(char** argv);

#endif
