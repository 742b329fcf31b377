#pragma once

#include <cstdint>
#include <vector>

#include "coarse_level.h"
#include "groups.h"

namespace flowos::solve {

// Aggregates that lie in blocks, so that group and lane stay: of a step its step in the coarse
// block.
struct Within {
  int coarse_steps = 0;
  const std::uint16_t* step = nullptr;
};

// The sweeps of a multigrid cycle over groups of one colour, and what the conjugate gradients do in
// the same pass over memory. A = L + D + U. Sums are one per group. All sets give the same bits.
template <class T>
struct CoarseKernels {
  // y = (D + L)^-1 r
  void (*forward)(const LevelView<T>& a, Groups groups, const T* r, T* y);
  // r -= alpha q, x += alpha p, sums = r'r, and then as forward
  void (*forward_update)(const LevelView<T>& a, Groups groups, T alpha, const T* p, const T* q,
                         T* x, T* r, T* y, double* sums);
  // -U y, which is r - A y after a forward sweep, added up within blocks
  void (*restrict_within)(const LevelView<T>& a, Groups groups, const Within& within, const T* y,
                          T* coarse);
  // -U y
  void (*residual)(const LevelView<T>& a, Groups groups, const T* y, T* residual);
  // y += what coarse has for it
  void (*prolong_within)(const LevelView<T>& a, Groups groups, const Within& within,
                         const T* coarse, T* y);
  // y = (D + U)^-1 (r - L y)
  void (*backward)(const LevelView<T>& a, Groups groups, const T* r, T* y);
  // The same; v = r - L y of the y before, sums = r'y of the y after
  void (*backward_keep)(const LevelView<T>& a, Groups groups, const T* r, T* y, T* v, double* sums);
  // p = z + beta p, q = v + L z + beta q, sums = p'q. With v from backward_keep, q = A p.
  void (*direction)(const LevelView<T>& a, Groups groups, const T* z, const T* v, T beta, T* p,
                    T* q, double* sums);
  // y = a r; columns of a one after another, rows a multiple of the lanes
  void (*dense)(std::int64_t rows, const T* a, const T* r, T* y);
};

template <class T>
const CoarseKernels<T>* coarse_kernels_v3();  // null: not compiled for it
template <class T>
const CoarseKernels<T>* coarse_kernels_v4();

// Those that run on this machine; the fastest comes last.
template <class T>
std::vector<const CoarseKernels<T>*> all_coarse_kernels();

}  // namespace flowos::solve
