#pragma once

#include <cstddef>
#include <cstring>
#include <span>

// By memcmp: sanitizers look at all bytes at once, where of a loop at each by itself.
inline bool same_bytes(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}
