// What the build and this CPU can do, asked of the hardware rather than of /proc.

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "bind.h"

namespace {

std::vector<std::string> instruction_sets() {
  std::vector<std::string> found;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("sse4.2")) found.emplace_back("sse4.2");
  if (__builtin_cpu_supports("avx")) found.emplace_back("avx");
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) found.emplace_back("avx2");
  if (__builtin_cpu_supports("avx512f")) found.emplace_back("avx512f");
#elif defined(__aarch64__)
  found.emplace_back("neon");
#endif
  return found;
}

std::string compiler() {
#if defined(__clang__)
  return "clang " __clang_version__;
#else
  return "gcc " __VERSION__;
#endif
}

}  // namespace

void bind_cpu(nanobind::module_& m) {
  m.def("instruction_sets", &instruction_sets,
        "The vector instruction sets that CPU and system allow, narrow first.");
  m.def("compiler", &compiler, "The compiler that built this module, with its version.");
}
