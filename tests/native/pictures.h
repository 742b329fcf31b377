#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "decode/crop.h"

// A picture for tests: rows of RGB without gaps.
struct Picture {
  std::uint32_t height, width;
  std::vector<std::uint8_t> pixels;

  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(pixels)); }
  std::uint8_t at(std::uint32_t y, std::uint32_t x, std::uint32_t channel) const {
    return pixels[(std::size_t{y} * width + x) * 3 + channel];
  }
};

// Every value by chance: what is worst for a resize, and for a codec.
inline Picture noise(std::uint32_t height, std::uint32_t width, std::uint64_t seed) {
  Picture picture{height, width, std::vector<std::uint8_t>(std::size_t{3} * height * width)};
  flowos::feed::Draws draws(seed);
  for (std::uint8_t& value : picture.pixels) value = static_cast<std::uint8_t>(draws.below(256));
  return picture;
}

// Slopes of colour and a little noise: what a codec is made for.
inline Picture slopes(std::uint32_t height, std::uint32_t width, std::uint64_t seed) {
  Picture picture = noise(height, width, seed);
  for (std::uint32_t y = 0; y < height; ++y) {
    for (std::uint32_t x = 0; x < width; ++x) {
      std::uint8_t* pixel = &picture.pixels[(std::size_t{y} * width + x) * 3];
      pixel[0] = static_cast<std::uint8_t>(x * 200 / width + pixel[0] % 16);
      pixel[1] = static_cast<std::uint8_t>(y * 200 / height + pixel[1] % 16);
      pixel[2] = static_cast<std::uint8_t>((x ^ y) % 128 + pixel[2] % 16);
    }
  }
  return picture;
}
