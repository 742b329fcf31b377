#pragma once

#include <future>
#include <vector>

namespace flowos::solve {

// Calls work(i) for each i < count, all at once, or one after another where the system has no more
// threads. The first exception is thrown here, when all have ended.
template <class Work>
void at_once(int count, const Work& work) {
  std::vector<std::future<void>> others;
  for (int i = 1; i < count; ++i) others.push_back(std::async([&work, i] { work(i); }));
  work(0);
  for (std::future<void>& other : others) other.get();
}

}  // namespace flowos::solve
