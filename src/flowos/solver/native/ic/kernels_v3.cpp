// Compiled for x86-64-v3 (CMakeLists.txt); chosen when the program runs.

#include "ic/kernels.h"
#include "ic/kernels_body.h"

namespace flowos::solve {

#if defined(__AVX2__)
template <class T>
const CholeskyKernels<T>* cholesky_kernels_v3() {
  return &kCholeskyKernels<T>;
}
#else
template <class T>
const CholeskyKernels<T>* cholesky_kernels_v3() {
  return nullptr;
}
#endif

template const CholeskyKernels<float>* cholesky_kernels_v3();
template const CholeskyKernels<double>* cholesky_kernels_v3();

}  // namespace flowos::solve
