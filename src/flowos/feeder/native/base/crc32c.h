#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace flowos::feed {

// CRC-32C (Castagnoli), as of RFC 3720 appendix B.4; by the CPU's instructions where it has them.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t so_far = 0);

// One way to compute it, on the bare register: crc32c(bytes) == ~run(~0, bytes).
struct Crc32cVariant {
  const char* name;
  std::uint32_t (*run)(std::uint32_t state, const std::byte* bytes, std::size_t count);
};

// The variants that this CPU has, fastest first; the last one needs nothing of it.
std::span<const Crc32cVariant> crc32c_variants();

}  // namespace flowos::feed
