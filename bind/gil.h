#pragma once

#include <nanobind/nanobind.h>
#include <unistd.h>

// Python before 3.14 ends a thread that takes the GIL of an interpreter which shuts down by
// pthread_exit, and that unwinds through frames that are noexcept: std::terminate. Here such a
// thread waits for the end of the process, as with Python 3.14 (github.com/python/cpython 87135).
template <typename Take>
auto take_or_wait(const Take& take) noexcept {
  try {
    return take();
  } catch (...) {  // a forced unwind may be caught, but its handler may not end
    for (;;) pause();
  }
}

// For threads of Python: others work while it lives.
class GilRelease {
 public:
  GilRelease() : state_(PyEval_SaveThread()) {}
  GilRelease(const GilRelease&) = delete;
  GilRelease& operator=(const GilRelease&) = delete;
  ~GilRelease() {
    take_or_wait([this] { PyEval_RestoreThread(state_); });
  }

 private:
  PyThreadState* state_;
};

// Within a GilRelease.
class GilAcquire {
 public:
  GilAcquire() : state_(take_or_wait([] { return PyGILState_Ensure(); })) {}
  GilAcquire(const GilAcquire&) = delete;
  GilAcquire& operator=(const GilAcquire&) = delete;
  ~GilAcquire() { PyGILState_Release(state_); }

 private:
  PyGILState_STATE state_;
};
