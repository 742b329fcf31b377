/* What a booted guest and the process that started it send each other (see boot.h). */
#ifndef FLOWOS_INIT_PUMP_H
#define FLOWOS_INIT_PUMP_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

/* Ports of one virtio-serial device. CONTROL carries the request, then messages both ways. */
enum port { CONTROL = 1, INPUT, OUTPUT, ERRORS, LAST_PORT = ERRORS };

enum what {
  BEAT = 1, /* guest: it lives */
  STARTED,  /* guest: the command is about to run */
  ENDED,    /* guest: flowos-init ended with code `number`; bytes sent as OUTPUT and ERRORS */
  SIGNAL,   /* host: send signal `number` to the command */
  GONE,     /* host: the supervisor has closed `lifeline` */
  NO_INPUT, /* host: its input had `bytes[0]` bytes, and has ended */
  CLOSED    /* host: nothing reads port `number` any more */
};

/* Both are of one machine, so these go as they lie. */
struct message {
  int what;
  int number;
  unsigned long long bytes[2];
};

/* The next message, of which `got` bytes have come; false if it is not whole yet. */
bool next_message(int fd, struct message* message, size_t* got);
void send_message(int fd, struct message message);

/* Copies from one descriptor to another. */
struct pump {
  int from, to;
  size_t max_bytes; /* bytes to write at once: where a write of more could block */
  bool is_port;     /* `from` is one of a guest, whose end NO_INPUT says */
  bool ended;       /* `from` has no more */
  bool broken;      /* nothing reads `to` any more: the rest goes nowhere */
  unsigned long long taken, given;
  size_t at, have;
  char data[1 << 16];
};

struct pollfd waits_for(const struct pump* pump);
void pump_some(struct pump* pump, short ready);
bool is_empty(const struct pump* pump);

#endif
