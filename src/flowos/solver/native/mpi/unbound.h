#pragma once

#include <sched.h>

#include <vector>

#include "mpi/threads.h"

namespace flowos::solve {

// While it lives, threads that are begun here may run on all of these cpus, too. Where
// OMP_PROC_BIND is set, OpenMP binds the first thread to one place, which threads that are not
// OpenMP's would inherit: those of set-up would all run on one core.
class Unbound {
 public:
  explicit Unbound(const std::vector<int>& cpus = cpus_of_places()) {
    known_ = sched_getaffinity(0, sizeof before_, &before_) == 0;
    if (!known_) return;
    cpu_set_t all = before_;
    for (const int cpu : cpus) CPU_SET(cpu, &all);
    sched_setaffinity(0, sizeof all, &all);
  }
  Unbound(const Unbound&) = delete;
  Unbound& operator=(const Unbound&) = delete;
  ~Unbound() {
    if (known_) sched_setaffinity(0, sizeof before_, &before_);
  }

 private:
  cpu_set_t before_ = {};
  bool known_ = false;
};

}  // namespace flowos::solve
