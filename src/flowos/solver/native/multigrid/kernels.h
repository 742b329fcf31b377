#pragma once

#include <cstdint>
#include <vector>

#include "ordering/groups.h"
#include "simd/lanes_matrix.h"

namespace flowos::solve {

// Aggregates that lie in blocks, so that group and lane stay: of a step its step in the coarse
// block.
struct Within {
  int coarse_steps = 0;
  const std::uint16_t* step = nullptr;
};

// What conjugate gradients work on, by place.
template <class T>
struct GradientVectors {
  T* r = nullptr;
  T* z = nullptr;
  T* u = nullptr;  // of `keeps` kernels: what they know of A z after the backward sweep
  T* p = nullptr;
  T* q = nullptr;  // A p
  T* x = nullptr;
};

// The sweeps of a multigrid cycle over groups of one colour, and what the conjugate gradients do in
// the same pass over memory. A = L + D + U. Sums are one per group. All sets give the same bits.
template <class T>
struct CoarseKernels {
  // y = (D + L)^-1 r, ry = y'D y
  void (*forward)(const LevelView<T>& a, Groups groups, const T* r, T* y, double* ry);
  // r -= alpha q, rr = r'r, and then as forward for z
  void (*forward_update)(const LevelView<T>& a, Groups groups, T alpha, const GradientVectors<T>& v,
                         double* rr, double* ry);
  // -U y, which is r - A y after a forward sweep, added up within blocks
  void (*restrict_within)(const LevelView<T>& a, Groups groups, const Within& within, const T* y,
                          T* coarse);
  // -U y
  void (*residual)(const LevelView<T>& a, Groups groups, const T* y, T* residual);
  // y = (D + U)^-1 (r - L (y + c)), which needs no r after a forward sweep: it is (D + L) y. `c` is
  // the correction as a.spread reads it.
  void (*backward)(const LevelView<T>& a, Groups groups, const T* c, T* y);
  // The same for z, and u = D^-1 (r - L (z + c)).
  void (*backward_keep)(const LevelView<T>& a, Groups groups, const T* c,
                        const GradientVectors<T>& v);
  // x += alpha p, p = z + beta p, q = A z + beta q, pq = p'q. After backward_keep.
  void (*direction)(const LevelView<T>& a, Groups groups, T alpha, T beta,
                    const GradientVectors<T>& v, double* pq);
  // y = a r; columns of a one after another, rows a multiple of the lanes
  void (*dense)(std::int64_t rows, const T* a, const T* r, T* y);

  // The same for levels whose entries have one value for all lanes (EvenLanes). They read so little
  // that A z is summed up anew: there is no u.
  const CoarseKernels<T>* even = nullptr;
};

template <class T>
const CoarseKernels<T>* coarse_kernels_v3();  // null: not compiled for it
template <class T>
const CoarseKernels<T>* coarse_kernels_v4();

// Those that run on this machine; the fastest comes last.
template <class T>
std::vector<const CoarseKernels<T>*> all_coarse_kernels();

}  // namespace flowos::solve
