#include "base/at_once.h"

#include <future>
#include <vector>

#include "base/function_ref.h"

namespace flowos::solve {

void at_once(int count, FunctionRef<void(int)> work) {
  std::vector<std::future<void>> others;
  for (int i = 1; i < count; ++i) others.push_back(std::async([work, i] { work(i); }));
  work(0);
  for (std::future<void>& other : others) other.get();
}

}  // namespace flowos::solve
