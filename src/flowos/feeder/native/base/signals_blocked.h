#pragma once

#include <pthread.h>
#include <signal.h>

namespace flowos::feed {

// While it lives, threads that are started get no signals: those are for the threads of the program
// that uses us. Faults stay open: where one is blocked, the kernel ends the process and asks no
// handler, so that a cache's file which is truncated while it is mapped would end the program.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t most;
    sigfillset(&most);
    for (const int fault : {SIGBUS, SIGSEGV, SIGFPE, SIGILL}) sigdelset(&most, fault);
    pthread_sigmask(SIG_SETMASK, &most, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace flowos::feed
