#pragma once

#include <vector>

#include "ordering/groups.h"
#include "simd/lanes_matrix.h"

namespace flowos::solve {

// What an iteration by Eisenstat's trick works on, by place. The matrix is scaled to pivots of 1:
// A = L + D + L', and M = (I + L)(I + L'). w = t + s is the preconditioned matrix times p.
template <class T>
struct CholeskyVectors {
  const T* middle = nullptr;  // D - 2
  T* r = nullptr;
  T* p = nullptr;
  T* t = nullptr;
  T* s = nullptr;
  T* x = nullptr;
  T diagonal = 0;  // of even matrices
};

// The two passes over memory of an iteration (Eisenstat: SIAM Journal on Scientific and Statistical
// Computing 2, 1981), over groups of one colour. Sums are one per group. All sets give the same
// bits.
template <class T>
struct CholeskyKernels {
  // (I + L) y = y, sums = y'y
  void (*forward)(const LevelView<T>& a, Groups groups, T* y, double* sums);
  // (I + L') y = y
  void (*backward)(const LevelView<T>& a, Groups groups, T* y);
  // r -= alpha w, p = r + beta p, x += alpha t, then (I + L') t = p; rr = r'r
  void (*backward_step)(const LevelView<T>& a, Groups groups, T alpha, T beta,
                        const CholeskyVectors<T>& v, double* rr);
  // (I + L) s = p + (D - 2) t; pw = p'w, ww = w'w
  void (*forward_step)(const LevelView<T>& a, Groups groups, const CholeskyVectors<T>& v,
                       double* pw, double* ww);
  // Both, group by group, of the first colour, whose rows have no others before them than those of
  // their own block: the forward sweep finds in the cache what the backward one left.
  void (*both_steps)(const LevelView<T>& a, Groups groups, T alpha, T beta,
                     const CholeskyVectors<T>& v, double* rr, double* pw, double* ww);

  // The same for even matrices, as they are: all of the diagonal is `diagonal`, an entry has one
  // value for all its lanes, and `inverse` is that of the pivots. With S their roots' inverse, r
  // and p are then S r and S p of the above, and t and s S t and S s, so that x is x; sums are the
  // same.
  const CholeskyKernels<T>* even = nullptr;
};

template <class T>
const CholeskyKernels<T>* cholesky_kernels_v3();  // null: not compiled for it
template <class T>
const CholeskyKernels<T>* cholesky_kernels_v4();

// Those that run on this machine; the fastest comes last.
template <class T>
std::vector<const CholeskyKernels<T>*> all_cholesky_kernels();

}  // namespace flowos::solve
