/* Dot products of narrow numbers (bf16 in sums of f32, i8 in sums of i32): what goes into a kernel,
 * and what must come out. All numbers are small integers, so that every sum is exact. */
#ifndef FLOWOS_FLOPS_DOT_H
#define FLOWOS_FLOPS_DOT_H

#include "flops_kernel.h"

static int is_dot(const struct kernel *kernel) { return kernel->steps >= DOTS; }

/* Of m and of a in a vector; each element is used as often. */
static int rows_of(const struct kernel *kernel) {
  if (kernel->steps == PRODUCTS_OF_16) return 16;
  return kernel->steps == PRODUCTS_OF_2 ? 2 : 1;
}

static double sum_at(const struct kernel *kernel, const union registers *from, int index) {
  return kernel->element_bytes == 2 ? (double)from->f32[index] : from->i32[index];
}

static void put(const struct kernel *kernel, union registers *in, int place, int value) {
  if (kernel->element_bytes == 1) {
    in->i8[place] = (int8_t)value;
    return;
  }
  const float real = (float)value;
  uint32_t bits;
  memcpy(&bits, &real, sizeof bits);
  in->bf16[place] = (uint16_t)(bits >> 16);
}

static int get(const struct kernel *kernel, const union registers *in, int place) {
  if (kernel->element_bytes == 1) return in->i8[place];
  const uint32_t bits = (uint32_t)in->bf16[place] << 16;
  float real;
  memcpy(&real, &bits, sizeof real);
  return (int)real;
}

/* Elements are 1..3, so that no dot product is 0; sums are 0..63 at first. */
static void fill_dots(const struct kernel *kernel, union registers *in) {
  uint64_t state = 88172645463325252u;
  const int bytes = kernel->vector_bytes(), elements = bytes / kernel->element_bytes;
  for (int i = 0; i < kernel->chains * bytes / 4; i++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const int value = (int)(state >> 58);
    if (kernel->element_bytes == 2)
      in->f32[i] = (float)value;
    else
      in->i32[i] = value;
  }
  for (int i = kernel->chains * elements; i < (kernel->chains + 1) * elements; i++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const int m = 1 + (int)(state >> 60) % 3, a = 1 + (int)(state >> 40 & 15) % 3;
    put(kernel, in, i, m);
    put(kernel, in, i + elements, a);
    put(kernel, in, i + 2 * elements, -a);
  }
}

/* What a pass adds to a sum of each chain. elements: of a vector. */
static int dot_of(const struct kernel *kernel, const union registers *in, int sum, int elements) {
  const int rows = rows_of(kernel), terms = 4 * rows / kernel->element_bytes;
  const int group = kernel->steps == PRODUCTS_OF_16 ? 4 / kernel->element_bytes : terms;
  const int row = sum / rows % rows, column = sum % rows;
  const int m = kernel->chains * elements + sum / (rows * rows) * rows * terms, a = m + elements;
  int dot = 0;
  for (int t = 0; t < terms; t++) {
    const int with = t / group * rows * group + column * group + t % group;
    dot += get(kernel, in, m + row * terms + t) * get(kernel, in, a + with);
  }
  return dot;
}

/* Ends the program unless each sum has exactly its value after so many steps. */
static void check_dots(const struct kernel *kernel, const union registers *in,
                       const union registers *out) {
  const int bytes = kernel->vector_bytes(), sums = bytes / 4;
  for (int i = 0; i < sums; i++) {
    const int dot = dot_of(kernel, in, i, bytes / kernel->element_bytes);
    for (int chain = 0; chain < kernel->chains; chain++) {
      const double right = sum_at(kernel, in, chain * sums + i) + dot;
      const double found = sum_at(kernel, out, chain * sums + i);
      if (!(found == right))
        fm_fail("%s, %s: chain %d ended at %.17g, not at %.17g", kernel->isa, kernel->mix, chain,
                found, right);
    }
  }
}

#endif
