/* Flop kernels of x86-64: SSE4.2 and AVX multiply and add, AVX2 and AVX-512 fuse both.
 *
 * Without fused multiply-add the order matters: cores with pipes of their own for adds (Zen) do up
 * to 4 operations per cycle, but only if each pipe finds work in every cycle. On Zen 5 separate
 * chains for multiplies and for adds reach 3 to 3.5, chains that do both by turns reach 4. */
#ifndef FLOWOS_FLOPS_X86_H
#define FLOWOS_FLOPS_X86_H

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
#define AVX512_KERNEL(type)                                           \
  __attribute__((target("avx512f"))) X86_KERNEL(                      \
      avx512_##type, EACH(ALL_28, "vmovups \\i*64(%[in]), %%zmm\\i"), \
      AVX512_PASS(#type) AVX512_PASS(#type),                          \
      EACH(ALL_24, "vmovups %%zmm\\i, \\i*64(%[out])") "vzeroupper", XMM_0_TO_15, XMM_16_TO_27)

SSE_KERNELS(ps)
SSE_KERNELS(pd)
AVX_KERNELS(ps)
AVX_KERNELS(pd)
AVX2_KERNEL(ps)
AVX2_KERNEL(pd)
AVX512_KERNEL(ps)
AVX512_KERNEL(pd)

/* __builtin_cpu_supports asks CPUID and, by xgetbv, whether the system saves the registers. */
static int sse_bytes(void) { return __builtin_cpu_supports("sse4.2") ? 16 : 0; }
static int avx_bytes(void) { return __builtin_cpu_supports("avx") ? 32 : 0; }
static int avx2_bytes(void) {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? 32 : 0;
}
static int avx512_bytes(void) { return __builtin_cpu_supports("avx512f") ? 64 : 0; }

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
};

#endif
