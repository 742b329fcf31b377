#pragma once

#include "base/function_ref.h"

namespace flowos::solve {

// Calls work(i) for each i < count, all at once, or one after another where the system has no more
// threads. The first exception is thrown here, when all have ended.
void at_once(int count, FunctionRef<void(int)> work);

}  // namespace flowos::solve
