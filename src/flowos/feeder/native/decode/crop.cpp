#include "decode/crop.h"

#include <cmath>
#include <cstdint>

#include "decode/decoder.h"

namespace flowos::feed {
namespace {

constexpr std::uint64_t step = 0x9E3779B97F4A7C15;  // 2^64 / golden ratio

constexpr std::uint64_t mixed(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

Range whole(std::uint32_t size) { return {0.0, static_cast<double>(size), 0, size}; }

Range part(std::uint32_t first, std::uint32_t size) {
  return {static_cast<double>(first), static_cast<double>(first + size), first, first + size};
}

// Where a crop of `wanted` pixels out of the middle of `scaled` pixels lies in the `size` pixels
// that were scaled to these. Python's round, as torchvision calls it: half to even.
Range middle(std::uint32_t size, double scaled, double wanted) {
  const double before = std::nearbyint((scaled - wanted) / 2.0);
  const double scale = size / scaled;
  return {before * scale, (before + wanted) * scale, 0, size};
}

Region centre(const ImageSettings& settings, std::uint32_t height, std::uint32_t width) {
  const double min_height = std::nearbyint(settings.height / settings.centre_share);
  const double min_width = std::nearbyint(settings.width / settings.centre_share);
  double scaled_height = min_height;
  double scaled_width = std::trunc(min_height * width / height);
  if (min_height * width < min_width * height) {
    scaled_width = min_width;
    scaled_height = std::trunc(min_width * height / width);
  }
  return {middle(width, scaled_width, settings.width),
          middle(height, scaled_height, settings.height), false};
}

// The largest part of the middle with an aspect that is allowed.
Region fallback(const ImageSettings& settings, std::uint32_t height, std::uint32_t width) {
  const double aspect = static_cast<double>(width) / height;
  double h = height;
  double w = width;
  if (aspect < settings.aspect[0]) h = std::nearbyint(w / settings.aspect[0]);
  if (aspect > settings.aspect[1]) w = std::nearbyint(h * settings.aspect[1]);
  const auto rows = static_cast<std::uint32_t>(std::fmax(h, 1.0));
  const auto columns = static_cast<std::uint32_t>(std::fmax(w, 1.0));
  return {part((width - columns) / 2, columns), part((height - rows) / 2, rows), false};
}

Region random(const ImageSettings& settings, std::uint32_t height, std::uint32_t width,
              Draws& draws) {
  const double area = static_cast<double>(height) * width;
  const double low = std::log(settings.aspect[0]);
  const double high = std::log(settings.aspect[1]);
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double wanted = area * draws.uniform(settings.area[0], settings.area[1]);
    const double aspect = std::exp(draws.uniform(low, high));
    const double w = std::nearbyint(std::sqrt(wanted * aspect));
    const double h = std::nearbyint(std::sqrt(wanted / aspect));
    if (w < 1 || w > width || h < 1 || h > height) continue;
    const auto rows = static_cast<std::uint32_t>(h);
    const auto columns = static_cast<std::uint32_t>(w);
    const std::uint32_t top = draws.below(height - rows + 1);
    const std::uint32_t left = draws.below(width - columns + 1);
    return {part(left, columns), part(top, rows), false};
  }
  return fallback(settings, height, width);
}

}  // namespace

Draws::Draws(std::uint64_t seed, std::uint64_t epoch, std::uint64_t sample)
    : state_(mixed(mixed(mixed(seed + step) + epoch + step) + sample + step)) {}

std::uint64_t Draws::next() { return mixed(state_ += step); }

double Draws::uniform(double low, double high) {
  return low + (high - low) * (static_cast<double>(next() >> 11) * 0x1p-53);
}

std::uint32_t Draws::below(std::uint32_t count) {
  return static_cast<std::uint32_t>(((next() >> 32) * count) >> 32);
}

Region region_of(const ImageSettings& settings, std::uint32_t height, std::uint32_t width,
                 std::uint64_t epoch, std::uint64_t sample) {
  Draws draws(settings.seed, epoch, sample);
  const bool flip = settings.flip && draws.below(2) == 1;
  Region region{whole(width), whole(height), false};
  if (settings.crop == ImageSettings::Crop::centre) region = centre(settings, height, width);
  if (settings.crop == ImageSettings::Crop::random) {
    region = random(settings, height, width, draws);
  }
  region.flip = flip;
  return region;
}

}  // namespace flowos::feed
