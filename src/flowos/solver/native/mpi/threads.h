#pragma once

// OpenMP's threads, which the person's OMP_NUM_THREADS and OMP_PLACES are about. Without OpenMP, as
// for tools that only read this, there is one.
#ifdef _OPENMP
#include <omp.h>
#endif

namespace flowos::solve {

#ifdef _OPENMP
inline int threads_wanted() { return omp_get_max_threads(); }
inline int threads_here() { return omp_get_num_threads(); }  // of the parallel region
inline int thread_here() { return omp_get_thread_num(); }
#else
inline int threads_wanted() { return 1; }
inline int threads_here() { return 1; }
inline int thread_here() { return 0; }
#endif

}  // namespace flowos::solve
