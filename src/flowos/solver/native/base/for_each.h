#pragma once

#include <cstddef>
#include <cstdint>

#include "base/function_ref.h"

namespace flowos::solve {

constexpr std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

// Calls work(part) for each part < parts, of which the threads take the next when they have done
// one. What a part is must not depend on how many threads there are. The one that calls looks up
// from it between parts (Pauses); when that throws, no more parts are begun.
void for_parts(std::int64_t parts, int threads, FunctionRef<void(std::int64_t)> work);

// The same for [0, count) in runs of `length`: work(first, end).
void for_runs(std::int64_t count, std::int64_t length, int threads,
              FunctionRef<void(std::int64_t, std::int64_t)> work);

}  // namespace flowos::solve
