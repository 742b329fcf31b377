#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace flowos::feed {

using Digest = std::array<std::byte, 32>;

// SHA-256, as of FIPS 180-4.
Digest sha256(std::span<const std::byte> message);

// HMAC-SHA256, as of RFC 2104.
Digest hmac_sha256(std::span<const std::byte> key, std::span<const std::byte> message);

// In constant time.
bool equal_in_constant_time(std::span<const std::byte> a, std::span<const std::byte> b);

}  // namespace flowos::feed
