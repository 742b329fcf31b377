/* Flop kernels of x86-64: SSE4.2 and AVX multiply and add, AVX2 and AVX-512 fuse both; for bf16 and
 * i8 dot products (VNNI, AVX512_BF16), and products of tiles (AMX).
 *
 * Without fused multiply-add the order matters: cores with pipes of their own for adds (Zen) do up
 * to 4 operations per cycle, but only if each pipe finds work in every cycle. On Zen 5 separate
 * chains for multiplies and for adds reach 3 to 3.5, chains that do both by turns reach 4.
 *
 * Instructions for bf16 and i8 are bytes, as many an assembler in use does not know their names
 * (GNU as knows AMX from 2.35 on). They are encoded as Intel's Software Developer's Manual says. */
#ifndef FLOWOS_FLOPS_X86_H
#define FLOWOS_FLOPS_X86_H

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "flops_kernel.h"

#define XMM_0_TO_15                                                                        \
  "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", \
      "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"
#define XMM_16_TO_27                                                                        \
  "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", \
      "xmm26", "xmm27"

#define X86_KERNEL(name, load, body, store, ...)                                        \
  static void name(long rounds, const void *in, void *out) {                            \
    __asm__ volatile(load ".p2align 6\n1:\n\t" body "dec %[rounds]\n\tjnz 1b\n\t" store \
                     : [rounds] "+r"(rounds)                                            \
                     : [in] "r"(in), [out] "r"(out)                                     \
                     : "cc", "memory", __VA_ARGS__);                                    \
  }

/* In the mixes: m and a of even chains in 12 and 14, of odd ones in 13 and 15; or one of each. */
#define TWELVE(MULTIPLY, ADD, type) \
  MULTIPLY(EVEN_12, "12", type)     \
  MULTIPLY(ODD_12, "13", type) ADD(EVEN_12, "14", type) ADD(ODD_12, "15", type)
#define FOURTEEN(MULTIPLY, ADD, type) MULTIPLY(ALL_14, "14", type) ADD(ALL_14, "15", type)

#define SSE_LOAD EACH(ALL_16, "movups \\i*16(%[in]), %%xmm\\i")
#define SSE_STORE(chains) EACH(chains, "movups %%xmm\\i, \\i*16(%[out])")
#define SSE_MULTIPLY(chains, m, type) EACH(chains, "mul" type " %%xmm" m ", %%xmm\\i")
#define SSE_ADD(chains, a, type) EACH(chains, "add" type " %%xmm" a ", %%xmm\\i")
#define SSE_KERNELS(type)                                                                        \
  X86_KERNEL(sse_12_##type, SSE_LOAD, TWELVE(SSE_MULTIPLY, SSE_ADD, #type), SSE_STORE(ALL_12),   \
             XMM_0_TO_15)                                                                        \
  X86_KERNEL(sse_14_##type, SSE_LOAD, FOURTEEN(SSE_MULTIPLY, SSE_ADD, #type), SSE_STORE(ALL_14), \
             XMM_0_TO_15)

#define AVX_LOAD EACH(ALL_16, "vmovups \\i*32(%[in]), %%ymm\\i")
#define AVX_STORE(chains) EACH(chains, "vmovups %%ymm\\i, \\i*32(%[out])") "vzeroupper"
#define AVX_MULTIPLY(chains, m, type) EACH(chains, "vmul" type " %%ymm" m ", %%ymm\\i, %%ymm\\i")
#define AVX_ADD(chains, a, type) EACH(chains, "vadd" type " %%ymm" a ", %%ymm\\i, %%ymm\\i")
#define AVX_KERNELS(type)                                                                        \
  X86_KERNEL(avx_12_##type, AVX_LOAD, TWELVE(AVX_MULTIPLY, AVX_ADD, #type), AVX_STORE(ALL_12),   \
             XMM_0_TO_15)                                                                        \
  X86_KERNEL(avx_14_##type, AVX_LOAD, FOURTEEN(AVX_MULTIPLY, AVX_ADD, #type), AVX_STORE(ALL_14), \
             XMM_0_TO_15)

/* vfmadd213: x = m * x + a */
#define AVX2_FUSED(chains, m, a, type) \
  EACH(chains, "vfmadd213" type " %%ymm" a ", %%ymm" m ", %%ymm\\i")
#define AVX2_PASS(type) AVX2_FUSED(EVEN_12, "12", "14", type) AVX2_FUSED(ODD_12, "13", "15", type)
#define AVX2_KERNEL(type)                                                                 \
  X86_KERNEL(avx2_##type, AVX_LOAD, AVX2_PASS(#type) AVX2_PASS(#type), AVX_STORE(ALL_12), \
             XMM_0_TO_15)

#define AVX512_FUSED(chains, m, a, type) \
  EACH(chains, "vfmadd213" type " %%zmm" a ", %%zmm" m ", %%zmm\\i")
#define AVX512_PASS(type) \
  AVX512_FUSED(EVEN_24, "24", "26", type) AVX512_FUSED(ODD_24, "25", "27", type)
#define AVX512_LOAD EACH(ALL_28, "vmovups \\i*64(%[in]), %%zmm\\i")
#define AVX512_STORE EACH(ALL_24, "vmovups %%zmm\\i, \\i*64(%[out])") "vzeroupper"
#define AVX512(name, load, body)                                                             \
  __attribute__((target("avx512f"))) X86_KERNEL(name, load, body, AVX512_STORE, XMM_0_TO_15, \
                                                XMM_16_TO_27)
#define AVX512_KERNEL(type) \
  AVX512(avx512_##type, AVX512_LOAD, AVX512_PASS(#type) AVX512_PASS(#type))

/* x += m . a: a pass adds before the loop, and in it one takes away, one adds.
 * vpdpbusd: m in ymm12, a in ymm13 (rm 5), -a in ymm14 (rm 6) */
#define VNNI_PASS(rm) \
  EACH(ALL_12, ".byte 0xc4, 0xc2 ^ ((\\i & 8) << 4), 0x1d, 0x50, 0xc0 + ((\\i & 7) << 3) + " #rm)

/* m in zmm24, a in zmm25 (rm 1), -a in zmm26 (rm 2). vex: the byte that says that it is zmm24. */
#define EVEX_PASS(vex, opcode, rm)                                                          \
  EACH(ALL_24, ".byte 0x62, 0x92 ^ ((\\i & 8) << 4) ^ (\\i & 16), " #vex ", 0x40, " #opcode \
               ", 0xc0 + ((\\i & 7) << 3) + " #rm)
#define EVEX_KERNEL(name, vex, opcode)                \
  AVX512(name, AVX512_LOAD EVEX_PASS(vex, opcode, 1), \
         EVEX_PASS(vex, opcode, 2) EVEX_PASS(vex, opcode, 1))

/* Tiles of 16 rows of 64 bytes: chains in 0..4, m in 5, a in 6, -a in 7. ldtilecfg (%rdx);
 * tileloadd and tilestored at rax + i * 1024, rows 64 (rcx) apart; tilerelease. vex: the byte that
 * says that it is tile 6 or 7. No compiler uses tiles by itself, and gcc has no names for them. */
#define ALL_TILES "0,1,2,3,4,5,6,7"
#define TILE_CHAINS "0,1,2,3,4"
#define TILES                                                            \
  ".pushsection .rodata\n\t.p2align 6\n3:\n\t.byte 1, 0\n\t.fill 14\n\t" \
  ".fill 8, 2, 64\n\t.fill 8, 2, 0\n\t.fill 8, 1, 16\n\t.fill 8\n\t.popsection\n\t"
#define AMX_MOVE(tiles, vex) \
  EACH(tiles, ".byte 0xc4, 0xe2, " #vex ", 0x4b, 0x84 + (\\i << 3), 0x08\n\t.long \\i*1024")
#define AMX_LOAD                                                   \
  TILES                                                            \
  "lea 3b(%%rip), %%rdx\n\t.byte 0xc4, 0xe2, 0x78, 0x49, 0x02\n\t" \
  "mov %[in], %%rax\n\tmov $64, %%ecx\n\t" AMX_MOVE(ALL_TILES, 0x7b)
#define AMX_STORE \
  "mov %[out], %%rax\n\t" AMX_MOVE(TILE_CHAINS, 0x7a) ".byte 0xc4, 0xe2, 0x78, 0x49, 0xc0"
#define AMX_PASS(vex, opcode) \
  EACH(TILE_CHAINS, ".byte 0xc4, 0xe2, " #vex ", " #opcode ", 0xc5 + (\\i << 3)")
#define AMX_KERNEL(name, add, take, opcode)                                                      \
  X86_KERNEL(name, AMX_LOAD AMX_PASS(add, opcode), AMX_PASS(take, opcode) AMX_PASS(add, opcode), \
             AMX_STORE, "rax", "rcx", "rdx")

SSE_KERNELS(ps)
SSE_KERNELS(pd)
AVX_KERNELS(ps)
AVX_KERNELS(pd)
AVX2_KERNEL(ps)
AVX2_KERNEL(pd)
AVX512_KERNEL(ps)
AVX512_KERNEL(pd)
X86_KERNEL(avx_vnni, AVX_LOAD VNNI_PASS(5), VNNI_PASS(6) VNNI_PASS(5), AVX_STORE(ALL_12),
           XMM_0_TO_15)
EVEX_KERNEL(avx512_vnni, 0x3d, 0x50)
EVEX_KERNEL(avx512_bf16, 0x3e, 0x52)
AMX_KERNEL(amx_bf16, 0x4a, 0x42, 0x5c)
AMX_KERNEL(amx_int8, 0x49, 0x41, 0x5e)

/* __builtin_cpu_supports asks CPUID and, by xgetbv, whether the system saves the registers. */
static int sse_bytes(void) { return __builtin_cpu_supports("sse4.2") ? 16 : 0; }
static int avx_bytes(void) { return __builtin_cpu_supports("avx") ? 32 : 0; }
static int avx2_bytes(void) {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? 32 : 0;
}
static int avx512_bytes(void) { return __builtin_cpu_supports("avx512f") ? 64 : 0; }

enum { EAX, EBX, ECX, EDX };
enum { XTILEDATA = 18, ARCH_REQ_XCOMP_PERM = 0x1023 };

/* A bit of what CPUID says of extensions, of those that old compilers cannot ask for. */
static int extension(unsigned leaf, int word, int bit) {
  unsigned words[4] = {0};
  return __get_cpuid_count(7, leaf, &words[EAX], &words[EBX], &words[ECX], &words[EDX]) &&
         (words[word] >> bit & 1);
}

static int has_tiles(void) { return extension(0, EDX, 24); }

/* The kernel gives the tiles to processes that ask, since 5.16. */
static int tiles_are_allowed(void) {
  return !syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XTILEDATA);
}
static int tile_bytes(int bit) {
  return has_tiles() && extension(0, EDX, bit) && tiles_are_allowed() ? 1024 : 0;
}

static int avx_vnni_bytes(void) { return extension(1, EAX, 4) ? avx2_bytes() : 0; }
static int avx512_vnni_bytes(void) { return extension(0, ECX, 11) ? avx512_bytes() : 0; }
static int avx512_bf16_bytes(void) { return extension(1, EAX, 5) ? avx512_bytes() : 0; }
static int amx_bf16_bytes(void) { return tile_bytes(22); }
static int amx_int8_bytes(void) { return tile_bytes(25); }

/* Why the tiles that this processor has cannot be used; "" if it has none, or they can. */
static const char *refusal(void) {
  static char why[200];
  if (has_tiles() && !tiles_are_allowed())
    snprintf(why, sizeof why, "the kernel refuses the tiles of AMX: %s", strerror(errno));
  return why;
}

#define BY_TURNS_12 "12 chains multiply and add by turns"
#define BY_TURNS_14 "14 chains multiply and add by turns"
static const struct kernel kernels[] = {
    {"sse4.2", BY_TURNS_12, sse_bytes, sse_12_ps, 12, 4, 4, 1, CONVERGES},
    {"sse4.2", BY_TURNS_14, sse_bytes, sse_14_ps, 14, 2, 4, 1, CONVERGES},
    {"sse4.2", BY_TURNS_12, sse_bytes, sse_12_pd, 12, 4, 8, 1, CONVERGES},
    {"sse4.2", BY_TURNS_14, sse_bytes, sse_14_pd, 14, 2, 8, 1, CONVERGES},
    {"avx", BY_TURNS_12, avx_bytes, avx_12_ps, 12, 4, 4, 1, CONVERGES},
    {"avx", BY_TURNS_14, avx_bytes, avx_14_ps, 14, 2, 4, 1, CONVERGES},
    {"avx", BY_TURNS_12, avx_bytes, avx_12_pd, 12, 4, 8, 1, CONVERGES},
    {"avx", BY_TURNS_14, avx_bytes, avx_14_pd, 14, 2, 8, 1, CONVERGES},
    {"avx2", "12 chains of fused multiply-add", avx2_bytes, avx2_ps, 12, 4, 4, 2, CONVERGES},
    {"avx2", "12 chains of fused multiply-add", avx2_bytes, avx2_pd, 12, 4, 8, 2, CONVERGES},
    {"avx512f", "24 chains of fused multiply-add", avx512_bytes, avx512_ps, 24, 4, 4, 2, CONVERGES},
    {"avx512f", "24 chains of fused multiply-add", avx512_bytes, avx512_pd, 24, 4, 8, 2, CONVERGES},
    {"avx_vnni", "12 chains of vpdpbusd", avx_vnni_bytes, avx_vnni, 12, 3, 1, 2, DOTS},
    {"avx512_vnni", "24 chains of vpdpbusd", avx512_vnni_bytes, avx512_vnni, 24, 3, 1, 2, DOTS},
    {"avx512_bf16", "24 chains of vdpbf16ps", avx512_bf16_bytes, avx512_bf16, 24, 3, 2, 2, DOTS},
    {"amx_int8", "5 chains of tdpbusd", amx_int8_bytes, amx_int8, 5, 3, 1, 2, PRODUCTS_OF_16},
    {"amx_bf16", "5 chains of tdpbf16ps", amx_bf16_bytes, amx_bf16, 5, 3, 2, 2, PRODUCTS_OF_16},
};

#endif
