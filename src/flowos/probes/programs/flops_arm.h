/* Flop kernels of aarch64: NEON, and SVE at the vector length that the machine has.
 *
 * NEON's fused multiply-add can only add to a register, so its chains go to and fro. Instructions
 * for bf16 and i8 are words, as many an assembler in use does not know their names. */
#ifndef FLOWOS_FLOPS_ARM_H
#define FLOWOS_FLOPS_ARM_H

#include <sys/auxv.h>

#include "flops_kernel.h"

#ifndef HWCAP_SVE
#define HWCAP_SVE (1 << 22)
#endif
#ifndef HWCAP_ASIMDDP
#define HWCAP_ASIMDDP (1 << 20)
#endif
#ifndef HWCAP2_I8MM
#define HWCAP2_I8MM (1 << 13)
#endif
#ifndef HWCAP2_BF16
#define HWCAP2_BF16 (1 << 14)
#endif

#define V_0_TO_27                                                                                \
  "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", \
      "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27"

#define ARM_KERNEL(name, load, loop, store)                  \
  static void name(long rounds, const void *in, void *out) { \
    __asm__ volatile(load ".p2align 6\n1:\n\t" loop store    \
                     : [rounds] "+r"(rounds)                 \
                     : [in] "r"(in), [out] "r"(out)          \
                     : "cc", "memory", V_0_TO_27);           \
  }
#define COUNT_DOWN "subs %[rounds], %[rounds], #1\n\t"

/* Constants: m of even chains in v24, of odd ones in v25, a likewise in v26 and v27. The loop is
 * left after a pass of adds, so that a chain that missed a pass shows. */
#define NEON_PASS(what, type)                                       \
  EACH(EVEN_24, what " v\\i\\()." type ", v24." type ", v26." type) \
  EACH(ODD_24, what " v\\i\\()." type ", v25." type ", v27." type)
#define NEON_LOOP(type) \
  NEON_PASS("fmla", type) COUNT_DOWN "b.eq 2f\n\t" NEON_PASS("fmls", type) "b 1b\n2:\n\t"
#define NEON_LOAD EACH(ALL_28, "ldr q\\i, [%[in], #16*\\i]")
#define NEON_STORE EACH(ALL_24, "str q\\i, [%[out], #16*\\i]")
#define NEON_KERNEL(name, type) ARM_KERNEL(name, NEON_LOAD, NEON_LOOP(type), NEON_STORE)

/* fmad: x = x * m + a */
#define SVE_PASS(type)                                                   \
  EACH(EVEN_24, "fmad z\\i\\()." type ", p0/m, z24." type ", z26." type) \
  EACH(ODD_24, "fmad z\\i\\()." type ", p0/m, z25." type ", z27." type)
#define SVE_LOOP(type) SVE_PASS(type) SVE_PASS(type) COUNT_DOWN "b.ne 1b\n\t"
#define SVE_LOAD \
  ".arch_extension sve\n\tptrue p0.b\n\t" EACH(ALL_28, "ldr z\\i, [%[in], #\\i, mul vl]")
#define SVE_STORE EACH(ALL_24, "str z\\i, [%[out], #\\i, mul vl]")
#define SVE_KERNEL(name, type) ARM_KERNEL(name, SVE_LOAD, SVE_LOOP(type), SVE_STORE)

/* x += m . a, by a word of instruction without its registers: m in v24, a in v25, -a in v26. */
#define DOT_PASS(word, a) EACH(ALL_24, ".inst " #word " + (" #a " << 16) + (24 << 5) + \\i")
#define DOT_LOOP(word) DOT_PASS(word, 26) DOT_PASS(word, 25) COUNT_DOWN "b.ne 1b\n\t"
#define DOT_KERNEL(name, word) \
  ARM_KERNEL(name, NEON_LOAD DOT_PASS(word, 25), DOT_LOOP(word), NEON_STORE)

NEON_KERNEL(neon_f32, "4s")
NEON_KERNEL(neon_f64, "2d")
SVE_KERNEL(sve_f32, "s")
SVE_KERNEL(sve_f64, "d")
DOT_KERNEL(neon_sdot, 0x4e809400)
DOT_KERNEL(neon_smmla, 0x4e80a400)
DOT_KERNEL(neon_bfdot, 0x6e40fc00)
DOT_KERNEL(neon_bfmmla, 0x6e40ec00)

static int neon_bytes(void) { return 16; }
static int sve_bytes(void) {
  long bytes = 0;
  if (getauxval(AT_HWCAP) & HWCAP_SVE)
    __asm__ volatile(".arch_extension sve\n\tcntb %0" : "=r"(bytes));
  return (int)bytes;
}
static int dotprod_bytes(void) { return getauxval(AT_HWCAP) & HWCAP_ASIMDDP ? 16 : 0; }
static int i8mm_bytes(void) { return getauxval(AT_HWCAP2) & HWCAP2_I8MM ? 16 : 0; }
static int bf16_bytes(void) { return getauxval(AT_HWCAP2) & HWCAP2_BF16 ? 16 : 0; }

static const char *refusal(void) { return ""; }

#define FUSED_24 "24 chains of fused multiply-add"
static const struct kernel kernels[] = {
    {"neon", FUSED_24, neon_bytes, neon_f32, 24, 4, 4, 2, ALTERNATES},
    {"neon", FUSED_24, neon_bytes, neon_f64, 24, 4, 8, 2, ALTERNATES},
    {"sve", FUSED_24, sve_bytes, sve_f32, 24, 4, 4, 2, CONVERGES},
    {"sve", FUSED_24, sve_bytes, sve_f64, 24, 4, 8, 2, CONVERGES},
    {"neon_dotprod", "24 chains of sdot", dotprod_bytes, neon_sdot, 24, 3, 1, 2, DOTS},
    {"neon_i8mm", "24 chains of smmla", i8mm_bytes, neon_smmla, 24, 3, 1, 2, PRODUCTS_OF_2},
    {"neon_bf16", "24 chains of bfdot", bf16_bytes, neon_bfdot, 24, 3, 2, 2, DOTS},
    {"neon_bf16", "24 chains of bfmmla", bf16_bytes, neon_bfmmla, 24, 3, 2, 2, PRODUCTS_OF_2},
};

#endif
