/* A node that is booted into an image: the first process of its initrd. */
#ifndef FLOWOS_INIT_NODE_H
#define FLOWOS_INIT_NODE_H

/* Does the initrd hold an image, and so boot a node and no guest (guest.h)? */
int is_node(void);

/* Loads the modules of the initrd, mounts its image by a loop device under an overlay in memory,
 * and becomes the image's own first process: /sbin/init, or the kernel's parameter init=PROGRAM,
 * with the words that the kernel gave to us. On failure the reason stands on the console for a
 * minute, and then the machine starts anew. */
_Noreturn void be_node(char** argv);

#endif
