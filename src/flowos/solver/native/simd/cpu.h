#pragma once

namespace flowos::solve {

// Whether this processor runs code for x86-64-v3 and -v4.
#if defined(__x86_64__)
inline bool runs_v3() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") &&
         __builtin_cpu_supports("fma");
}
inline bool runs_v4() {
  return runs_v3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#else
inline bool runs_v3() { return false; }
inline bool runs_v4() { return false; }
#endif

}  // namespace flowos::solve
