#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace flowos::feed {

// CRC-32C (Castagnoli), as of RFC 3720 appendix B.4; by the CPU's instruction where it has one.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t so_far = 0);

}  // namespace flowos::feed
