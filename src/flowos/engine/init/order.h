/* The words of `flowos-init --boot` (boot.h), and what they come to for QEMU and for the guest. */
#ifndef FLOWOS_INIT_ORDER_H
#define FLOWOS_INIT_ORDER_H

#include <stdbool.h>
#include <stddef.h>

enum { MAX_SHARES = 64, MAX_COPIES = 8 };

struct share {
  const char *source, *target, *mode;
};

struct order {
  double seconds; /* of silence */
  bool counter;   /* the guest has the time stamp counter of this machine */
  const char* copies[MAX_COPIES];
  struct share shares[MAX_SHARES];
  int n_copies, n_shares;
  char **qemu, **inner;
};

/* False for other words than boot.h has. */
bool read_order(struct order* order, char** words);

const char* run_folder_of(const struct order* order);

/* QEMU's command line. ports: descriptors of its ends of the ports, by number (pump.h). */
char** words_for_qemu(const struct order* order, const int* ports);

/* Fields, each ended by NUL: uid, gid, count of groups, groups; seconds and nanoseconds since 1970;
 * name of the machine; count of copies, and of each its path and content; count of shares, and of
 * each its target, ro or rw, and the name of a file if it is one; count of words, words. Share N
 * has the tag sN. */
struct request {
  char* data;
  size_t size;
};

struct request make_request(const struct order* order);

#endif
