#include "multigrid/kernels.h"

#include <vector>

#include "multigrid/kernels_body.h"
#include "simd/cpu.h"

namespace flowos::solve {
template <class T>
std::vector<const CoarseKernels<T>*> all_coarse_kernels() {
  std::vector<const CoarseKernels<T>*> result = {&kKernels<T>};
  if (runs_v3() && coarse_kernels_v3<T>() != nullptr) result.push_back(coarse_kernels_v3<T>());
  if (runs_v4() && coarse_kernels_v4<T>() != nullptr) result.push_back(coarse_kernels_v4<T>());
  return result;
}

template std::vector<const CoarseKernels<float>*> all_coarse_kernels();
template std::vector<const CoarseKernels<double>*> all_coarse_kernels();

}  // namespace flowos::solve
