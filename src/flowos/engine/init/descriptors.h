/* The descriptors that a command inherits. */
#ifndef FLOWOS_INIT_DESCRIPTORS_H
#define FLOWOS_INIT_DESCRIPTORS_H

/* Where the run folder has a file `streams`, makes 3, 4 and 5 the standard streams. 0, or errno. */
int take_streams(int folder);

/* Closes all but the standard streams and `folder`, unless the launcher numbers ranks by one. */
void close_inherited(int folder);

#endif
