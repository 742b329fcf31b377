#include "ic/kernels.h"

#include <vector>

#include "ic/kernels_body.h"
#include "simd/cpu.h"

namespace flowos::solve {

template <class T>
std::vector<const CholeskyKernels<T>*> all_cholesky_kernels() {
  std::vector<const CholeskyKernels<T>*> result = {&kCholeskyKernels<T>};
  if (runs_v3() && cholesky_kernels_v3<T>() != nullptr) result.push_back(cholesky_kernels_v3<T>());
  if (runs_v4() && cholesky_kernels_v4<T>() != nullptr) result.push_back(cholesky_kernels_v4<T>());
  return result;
}

template std::vector<const CholeskyKernels<float>*> all_cholesky_kernels();
template std::vector<const CholeskyKernels<double>*> all_cholesky_kernels();

}  // namespace flowos::solve
