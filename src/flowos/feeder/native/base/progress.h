#pragma once

#include <atomic>
#include <cstdint>

namespace flowos::feed {

// Long work while it goes on: others may look at it, and stop it.
struct Progress {
  std::atomic<std::uint64_t> found{0};  // samples so far
  std::atomic<bool> stopped{false};     // it is to end, with FeedError
};

}  // namespace flowos::feed
