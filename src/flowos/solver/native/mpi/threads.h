#pragma once

// OpenMP's threads, which the person's OMP_NUM_THREADS and OMP_PLACES are about. Without OpenMP, as
// for tools that only read this, there is one.
#ifdef _OPENMP
#include <omp.h>
#endif

#include <cstddef>
#include <vector>

namespace flowos::solve {

#ifdef _OPENMP
inline int threads_wanted() { return omp_get_max_threads(); }
inline int threads_here() { return omp_get_num_threads(); }  // of the parallel region
inline int thread_here() { return omp_get_thread_num(); }
// Of all its places, one after another: none where threads are not bound.
inline std::vector<int> cpus_of_places() {
  std::vector<int> cpus;
  for (int place = 0; place < omp_get_num_places(); place++) {
    std::vector<int> its(static_cast<std::size_t>(omp_get_place_num_procs(place)));
    omp_get_place_proc_ids(place, its.data());
    cpus.insert(cpus.end(), its.begin(), its.end());
  }
  return cpus;
}
#else
inline std::vector<int> cpus_of_places() { return {}; }
inline int threads_wanted() { return 1; }
inline int threads_here() { return 1; }
inline int thread_here() { return 0; }
#endif

}  // namespace flowos::solve
