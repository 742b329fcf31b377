#pragma once

#include <nanobind/nanobind.h>
#include <pyerrors.h>

#include <chrono>
#include <future>

#include "base/progress.h"
#include "gil.h"

// Runs long work in a thread of its own, so that Ctrl-C ends it. With the GIL, which is free
// meanwhile. `given`: where it is looked at; may be null.
template <typename Work>
auto watched(flowos::feed::Progress* given, const Work& work) {
  flowos::feed::Progress own;
  flowos::feed::Progress& progress = given != nullptr ? *given : own;
  bool is_interrupted = false;
  std::future<decltype(work(progress))> done;
  {
    const GilRelease release;
    done = std::async(std::launch::async, [&] { return work(progress); });
    while (done.wait_for(std::chrono::milliseconds(50)) != std::future_status::ready) {
      const GilAcquire acquire;
      is_interrupted = PyErr_CheckSignals() != 0;
      if (is_interrupted) break;
    }
    progress.stopped = progress.stopped || is_interrupted;
    done.wait();
  }
  if (is_interrupted) throw nanobind::python_error();
  return done.get();
}
