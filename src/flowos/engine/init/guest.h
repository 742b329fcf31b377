/* A booted image: the first process of its guest. */
#ifndef FLOWOS_INIT_GUEST_H
#define FLOWOS_INIT_GUEST_H

/* Loads the modules of the initrd, mounts the image (squashfs on the first virtio disk) under an
 * overlay in memory, takes the request from the port of boot.h, mounts its shares, and runs
 * flowos-init as the user that it names, in a session of its own. Between its streams and the ports
 * it copies. Does not return: boot() ends the machine. */
_Noreturn void be_guest(int (*run)(char** argv));

#endif
