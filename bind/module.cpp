#include "bind.h"

NB_MODULE(_native, m) {
  m.doc() = "The compiled half of FlowOS.";
  bind_cache(m);
  bind_catalog(m);
  bind_cpu(m);
}
