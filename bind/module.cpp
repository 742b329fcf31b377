#include "bind.h"

NB_MODULE(_native, m) {
  m.doc() = "The compiled half of FlowOS.";
  // A forked child, and a daemon thread at the end of Python, let lie what they must not touch.
  nanobind::set_leak_warnings(false);
  bind_errors(m);
  bind_cache(m);
  bind_catalog(m);
  bind_cpu(m);
  bind_decoder(m);
  bind_feeder(m);
  bind_native_call(m);
  bind_solver(m);
}
