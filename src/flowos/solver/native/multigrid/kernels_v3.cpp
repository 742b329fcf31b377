// Compiled for x86-64-v3 (CMakeLists.txt); chosen when the program runs.

#include "multigrid/kernels.h"
#include "multigrid/kernels_body.h"

namespace flowos::solve {

#if defined(__AVX2__)
template <class T>
const CoarseKernels<T>* coarse_kernels_v3() {
  return &kKernels<T>;
}
#else
template <class T>
const CoarseKernels<T>* coarse_kernels_v3() {
  return nullptr;
}
#endif

template const CoarseKernels<float>* coarse_kernels_v3();
template const CoarseKernels<double>* coarse_kernels_v3();

}  // namespace flowos::solve
