/* The first process of a machine: from the initrd into an image. */
#ifndef FLOWOS_INIT_INITRD_H
#define FLOWOS_INIT_INITRD_H

/* Is this the first process of a machine, started from our own initrd? */
int is_first_process(const char* name);

/* Prints what failed, and why, to the kernel's log, and starts the machine anew. */
_Noreturn void give_up(const char* what, const char* name);

/* Seconds in which what give_up() has printed can be read; 0 before. */
void wait_before_restart(unsigned seconds);

void must_mount(const char* source, const char* target, const char* type, unsigned long flags,
                const char* options);

/* /proc, /sys and /dev of the initrd, and folders for enter_image(). */
void mount_own(void);

/* Opens it as each standard stream for which the kernel found no console. */
void fill_streams(const char* name);

/* Those of the initrd, in the order of their names. */
void load_modules(void);

/* The first device of this pattern: it appears a moment after its driver. */
int open_when_there(const char* pattern, int flags);

/* The image on this device, read-only under what is written in memory, becomes the root. */
void enter_image(const char* device);

#endif
