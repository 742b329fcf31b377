/* An image that is booted: the process on the node that stands for its guest. */
#ifndef FLOWOS_INIT_BOOT_H
#define FLOWOS_INIT_BOOT_H

/* flowos-init --boot [SECONDS | --counter | --copy FILE | --share SOURCE TARGET ro|rw]... --
 *   QEMU... -- INIT RUNDIR -- COMMAND...
 *
 * Starts QEMU with a port for each standard stream, one for control (pump.h), and a 9p share for
 * each SOURCE; the guest (guest.h) gets as its request whom to run as, each FILE, what to mount
 * where, and INIT's words, and runs flowos-init there, which reads and writes RUNDIR by the first
 * share that shows it. Here signals and the end of `lifeline` are handed on. A guest that says
 * nothing for SECONDS is ended. What went wrong stands in RUNDIR/status.0: "error silent SECONDS",
 * it said nothing for so long; "error died CODE", QEMU has ended with this code, and its last words
 * and those of the guest's kernel are printed.
 *
 * --counter: the guest has the time stamp counter of this machine, as by TCG, and its kernel is
 * given the rate (counter.h). Where it measures that on a busy machine, its clock may run several
 * times too fast.
 *
 * Returns the exit code: that of flowos-init in the guest. */
int boot(char** words);

#endif
