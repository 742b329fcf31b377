/* The descriptors that a command inherits. */
#ifndef FLOWOS_INIT_DESCRIPTORS_H
#define FLOWOS_INIT_DESCRIPTORS_H

/* Makes 3, 4 and 5 the standard streams. 0, or errno. */
int take_streams(void);

/* Closes all but the standard streams and `folder`. */
void close_inherited(int folder);

#endif
