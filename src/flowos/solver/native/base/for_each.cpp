#include "base/for_each.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>

#include "base/at_once.h"
#include "base/function_ref.h"
#include "base/pauses.h"

namespace flowos::solve {
namespace {

// What is thrown by it is thrown here, and `next` put to the end.
void look_up(std::atomic<std::int64_t>& next, std::int64_t end) {
  try {
    Pauses::look();
  } catch (...) {
    next = end;
    throw;
  }
}

}  // namespace

void for_parts(std::int64_t parts, int threads, FunctionRef<void(std::int64_t)> work) {
  const std::int64_t all = threads > 0 ? threads : std::thread::hardware_concurrency();
  std::atomic<std::int64_t> next = 0;
  at_once(static_cast<int>(std::clamp<std::int64_t>(all, 1, std::max<std::int64_t>(parts, 1))),
          [&](int thread) {
            for (std::int64_t part = next++; part < parts; part = next++) {
              if (thread == 0) look_up(next, parts);
              work(part);
            }
          });
}

void for_runs(std::int64_t count, std::int64_t length, int threads,
              FunctionRef<void(std::int64_t, std::int64_t)> work) {
  for_parts((count + length - 1) / length, threads,
            [&](std::int64_t part) { work(part * length, std::min(count, (part + 1) * length)); });
}

}  // namespace flowos::solve
