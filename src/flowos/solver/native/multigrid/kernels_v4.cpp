// Compiled for x86-64-v4 (CMakeLists.txt); chosen when the program runs.

#include "multigrid/kernels.h"
#include "multigrid/kernels_body.h"

namespace flowos::solve {

#if defined(__AVX512F__)
template <class T>
const CoarseKernels<T>* coarse_kernels_v4() {
  return &kKernels<T>;
}
#else
template <class T>
const CoarseKernels<T>* coarse_kernels_v4() {
  return nullptr;
}
#endif

template const CoarseKernels<float>* coarse_kernels_v4();
template const CoarseKernels<double>* coarse_kernels_v4();

}  // namespace flowos::solve
