/* What a flop kernel is, and how one is written.
 *
 * A kernel keeps `chains` vectors in registers and works on each in turn, all in one asm block, so
 * that no compiler can spill them (a spill once made AVX-512 look slower than AVX2). Enough chains
 * hide the latency: pipes x latency of them are needed. It loads its registers from `in` (chains,
 * then constants), and stores the chains to `out`. */
#ifndef FLOWOS_FLOPS_KERNEL_H
#define FLOWOS_FLOPS_KERNEL_H

#include "flowos_clock.h"

enum {
  MAX_REGISTERS = 32,
  MAX_BYTES = 256, /* of a vector; AMX has 8 tiles of 1024 */
};

/* CONVERGES: x = x * m + a, which ends at a / (1 - m) after some dozen rounds.
 * ALTERNATES: x = x + m * a, then x = x - m * a, and at last x + m * a.
 * The others alternate too, in sums of 4 bytes. DOTS: each lane adds the dot product of its own 4
 * bytes of m and a. PRODUCTS_OF_2: m and a are two rows each, whose four dot products are added.
 * PRODUCTS_OF_16: the same with 16 rows, but those of a are stored by turns, 4 bytes of each. */
enum steps { CONVERGES, ALTERNATES, DOTS, PRODUCTS_OF_2, PRODUCTS_OF_16 };

struct kernel {
  const char *isa;
  const char *mix;           /* how multiplies and adds are ordered */
  int (*vector_bytes)(void); /* 0 where this machine lacks the instruction set */
  void (*run)(long rounds, const void *in, void *out);
  int chains;
  int constants;     /* 2: m, a; 3: m, a, -a; 4: m of even chains, m of odd ones, a likewise */
  int element_bytes; /* f64 8, f32 4, bf16 2, i8 1 */
  int passes;        /* over all chains in a round */
  enum steps steps;
};

union registers {
  char bytes[MAX_REGISTERS * MAX_BYTES];
  float f32[MAX_REGISTERS * MAX_BYTES / 4];
  double f64[MAX_REGISTERS * MAX_BYTES / 8];
  uint16_t bf16[MAX_REGISTERS * MAX_BYTES / 2]; /* the upper halves of f32 */
  int8_t i8[MAX_REGISTERS * MAX_BYTES];
  int32_t i32[MAX_REGISTERS * MAX_BYTES / 4];
};

/* The line of assembly for each i of a list; write \\i where i goes. */
#define EACH(list, line) ".irp i," list "\n\t" line "\n\t.endr\n\t"

#define EVEN_12 "0,2,4,6,8,10"
#define ODD_12 "1,3,5,7,9,11"
#define LOW_12 "0,1,2,3,4,5"
#define HIGH_12 "6,7,8,9,10,11"
#define ALL_12 LOW_12 "," HIGH_12
#define ALL_14 ALL_12 ",12,13"
#define ALL_16 ALL_14 ",14,15"
#define EVEN_24 EVEN_12 ",12,14,16,18,20,22"
#define ODD_24 ODD_12 ",13,15,17,19,21,23"
#define ALL_24 ALL_16 ",16,17,18,19,20,21,22,23"
#define ALL_28 ALL_24 ",24,25,26,27"

#endif
