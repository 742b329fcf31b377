#include "decode/resize.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "decode/crop.h"

namespace flowos::feed {
namespace {

// Weights of the pixels from `first` on, before `past`, by their distance from `centre`; their sum
// is 1. How many there are: those at the end that are 0 do not count.
std::uint32_t triangle(std::uint32_t first, std::uint32_t past, double centre, double support,
                       double* weights) {
  double sum = 0.0;
  for (std::uint32_t x = first; x < past; ++x) {
    const double weight = std::fmax(0.0, 1.0 - std::fabs(x + 0.5 - centre) / support);
    weights[x - first] = weight;
    sum += weight;
  }
  std::uint32_t count = past - first;
  while (weights[count - 1] == 0.0) --count;
  for (std::uint32_t tap = 0; tap < count; ++tap) weights[tap] /= sum;
  return count;
}

// The finest at which the largest weight is an int16, and a weighted sum of bytes an int32.
unsigned precision_for(double largest) {
  unsigned precision = 22;
  while (largest * (1U << precision) > 32766.0) --precision;
  return precision;
}

// Rounds so that the sum is exact: a picture of one colour keeps it.
void put_rounded(std::span<const double> from, unsigned precision, std::int16_t* into) {
  double sum = 0.5;  // so that cutting off rounds
  std::int32_t before = 0;
  for (const double weight : from) {
    sum += weight * (1U << precision);
    const auto rounded = static_cast<std::int32_t>(sum);
    *into++ = static_cast<std::int16_t>(rounded - before);
    before = rounded;
  }
}

std::uint8_t shifted(std::int32_t sum, unsigned precision) {
  return static_cast<std::uint8_t>(sum >> precision);
}

// kTaps: as x.taps, where the compiler is to know it; else 0.
template <std::uint32_t kTaps>
void across_by(const Weights& x, const std::uint8_t* row, std::uint8_t* result) {
  const std::uint32_t taps = kTaps == 0 ? x.taps : kTaps;
  const std::uint32_t* first = x.first.data();
  const std::int16_t* weights = x.weights.data();
  const unsigned precision = x.precision;
  for (std::uint32_t left = x.size; left > 0; --left, weights += taps, result += 3) {
    const std::uint8_t* source = row + std::size_t{3} * *first++;
    std::int32_t red = 1 << (precision - 1);
    std::int32_t green = red;
    std::int32_t blue = red;
    for (std::uint32_t tap = 0; tap < taps; ++tap, source += 3) {
      red += weights[tap] * source[0];
      green += weights[tap] * source[1];
      blue += weights[tap] * source[2];
    }
    result[0] = shifted(red, precision);
    result[1] = shifted(green, precision);
    result[2] = shifted(blue, precision);
  }
}

void across(const Weights& x, const std::uint8_t* row, std::uint8_t* result) {
  x.taps == 4 ? across_by<4>(x, row, result) : across_by<0>(x, row, result);
}

// In blocks, so that the sums stay in the nearest cache.
void down(std::span<const std::uint8_t* const> rows, const std::int16_t* weights,
          unsigned precision, std::size_t bytes, std::uint8_t* result) {
  constexpr std::size_t block = 64;
  for (std::size_t begin = 0; begin < bytes; begin += block) {
    const std::size_t size = std::min(block, bytes - begin);
    std::int32_t sums[block];
    std::fill_n(sums, size, 1 << (precision - 1));
    for (std::size_t row = 0; row < rows.size(); ++row) {
      const std::uint8_t* source = rows[row] + begin;
      for (std::size_t i = 0; i < size; ++i) sums[i] += weights[row] * source[i];
    }
    for (std::size_t i = 0; i < size; ++i) result[begin + i] = shifted(sums[i], precision);
  }
}

}  // namespace

Weights::Weights(const Range& range, std::uint32_t result_size, bool reversed)
    : size(result_size), counts(result_size), first((std::size_t{result_size} + 3) / 4 * 4) {
  const double scale = (range.end - range.begin) / size;
  const double support = std::fmax(scale, 1.0);
  const auto pixel_at = [&](double x) {  // also outside the picture
    return static_cast<std::uint32_t>(
        std::clamp(x + 0.5, static_cast<double>(range.first), static_cast<double>(range.past)));
  };
  const auto room = static_cast<std::size_t>(std::ceil(2.0 * support)) + 1;
  std::vector<double> exact(size * room);
  double largest = 0.0;
  std::uint32_t most = 0;
  begin = range.past;
  end = range.first;
  for (std::uint32_t pixel = 0; pixel < size; ++pixel) {
    const std::uint32_t at = reversed ? size - 1 - pixel : pixel;
    const double centre = range.begin + (at + 0.5) * scale;
    double* of_pixel = &exact[pixel * room];
    first[pixel] = pixel_at(centre - support);
    counts[pixel] = triangle(first[pixel], pixel_at(centre + support), centre, support, of_pixel);
    largest = std::fmax(largest, *std::max_element(of_pixel, of_pixel + counts[pixel]));
    most = std::max(most, counts[pixel]);
    begin = std::min(begin, first[pixel]);
    end = std::max(end, first[pixel] + counts[pixel]);
  }
  taps = (most + 3) / 4 * 4;
  precision = precision_for(largest);
  weights.resize(first.size() * taps);
  for (std::uint32_t pixel = 0; pixel < size; ++pixel) {
    first[pixel] -= begin;
    put_rounded({&exact[pixel * room], counts[pixel]}, precision,
                &weights[std::size_t{pixel} * taps]);
  }
}

const RowKernels& plain_kernels() {
  static constexpr RowKernels kernels{across, down};
  return kernels;
}

const RowKernels& best_kernels() {
  static const RowKernels& best = avx2_kernels() == nullptr ? plain_kernels() : *avx2_kernels();
  return best;
}

}  // namespace flowos::feed
