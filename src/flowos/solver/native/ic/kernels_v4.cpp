// Compiled for x86-64-v4 (CMakeLists.txt); chosen when the program runs.

#include "ic/kernels.h"
#include "ic/kernels_body.h"

namespace flowos::solve {

#if defined(__AVX512F__)
template <class T>
const CholeskyKernels<T>* cholesky_kernels_v4() {
  return &kCholeskyKernels<T>;
}
#else
template <class T>
const CholeskyKernels<T>* cholesky_kernels_v4() {
  return nullptr;
}
#endif

template const CholeskyKernels<float>* cholesky_kernels_v4();
template const CholeskyKernels<double>* cholesky_kernels_v4();

}  // namespace flowos::solve
