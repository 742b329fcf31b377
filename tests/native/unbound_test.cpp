// During the set-up of ranks, threads may run on other cpus than OpenMP bound the first one to.

#include "mpi/unbound.h"

#include <sched.h>

#include <cstddef>
#include <cstdio>
#include <thread>
#include <vector>

#include "check.h"

using flowos::solve::Unbound;

namespace {

std::vector<int> cpus_here() {
  cpu_set_t set;
  CPU_ZERO(&set);
  CHECK(sched_getaffinity(0, sizeof set, &set) == 0);
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  return cpus;
}

void bind_to(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  CHECK(sched_setaffinity(0, sizeof set, &set) == 0);
}

std::size_t cpus_of_a_new_thread() {
  std::size_t count = 0;
  std::thread([&count] { count = cpus_here().size(); }).join();
  return count;
}

}  // namespace

int main() {
  const std::vector<int> all = cpus_here();
  if (all.size() < 2) {
    std::puts("one cpu only");
    return 77;
  }
  bind_to(all[0]);
  CHECK(cpus_of_a_new_thread() == 1);
  {
    const Unbound unbound(all);
    CHECK(cpus_of_a_new_thread() == all.size());
  }
  CHECK(cpus_of_a_new_thread() == 1);
  return 0;
}
