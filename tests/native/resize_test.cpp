// The resize against its definition in floating point, and its kernels against each other.

#include "decode/resize.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/errors.h"
#include "check.h"
#include "decode/crop.h"
#include "decode/decoder.h"
#include "decode/pixels.h"
#include "pictures.h"

using flowos::feed::avx2_kernels;
using flowos::feed::Draws;
using flowos::feed::FeedError;
using flowos::feed::fit_pixels;
using flowos::feed::Fitter;
using flowos::feed::ImageSettings;
using flowos::feed::Layout;
using flowos::feed::plain_kernels;
using flowos::feed::Range;
using flowos::feed::Region;
using flowos::feed::region_of;
using flowos::feed::RowKernels;
using flowos::feed::SampleError;
using flowos::feed::Weights;

namespace {

ImageSettings to(std::uint32_t height, std::uint32_t width) {
  ImageSettings settings;
  settings.height = height;
  settings.width = width;
  settings.crop = ImageSettings::Crop::none;
  return settings;
}

std::vector<std::uint8_t> fitted(const ImageSettings& settings, const Picture& picture) {
  std::vector<std::uint8_t> result(Layout(settings).size());
  fit_pixels(settings, picture.bytes(), picture.height, picture.width, 2, 5,
             reinterpret_cast<std::byte*>(result.data()));
  return result;
}

std::vector<std::uint8_t> fitted_by(const RowKernels& kernels, const ImageSettings& settings,
                                    const Picture& picture) {
  const Layout layout(settings);
  std::vector<std::uint8_t> result(layout.size());
  Fitter fitter(layout, region_of(settings, picture.height, picture.width, 2, 5),
                reinterpret_cast<std::byte*>(result.data()), kernels);
  const Weights& columns = fitter.columns();
  std::vector<std::uint8_t> row(columns.row_room());
  for (std::uint32_t y = fitter.rows().begin; y < fitter.rows().end; ++y) {
    std::memcpy(row.data(), &picture.pixels[(std::size_t{y} * picture.width + columns.begin) * 3],
                std::size_t{3} * (columns.end - columns.begin));
    fitter.take(row.data());
  }
  return result;
}

// One axis by the definition: of each result pixel, the weight of every source pixel.
std::vector<std::vector<double>> exact_weights(const Range& range, std::uint32_t size) {
  const double scale = (range.end - range.begin) / size;
  std::vector<std::vector<double>> all(size, std::vector<double>(range.past, 0.0));
  for (std::uint32_t i = 0; i < size; ++i) {
    double sum = 0.0;
    for (std::uint32_t x = range.first; x < range.past; ++x) {
      const double away = std::fabs(x + 0.5 - (range.begin + (i + 0.5) * scale));
      sum += all[i][x] = std::fmax(0.0, 1.0 - away / std::fmax(scale, 1.0));
    }
    for (double& weight : all[i]) weight /= sum;
  }
  return all;
}

double exact(const Picture& picture, const std::vector<double>& across,
             const std::vector<double>& down, std::uint32_t channel) {
  double sum = 0.0;
  for (std::uint32_t y = 0; y < down.size(); ++y) {
    if (down[y] == 0.0) continue;
    for (std::uint32_t x = 0; x < across.size(); ++x) {
      sum += down[y] * across[x] * picture.at(y, x, channel);
    }
  }
  return sum;
}

// Half a level is lost by rounding between the passes, half a level by rounding at the end.
void check_against_the_definition(const Picture& picture, const ImageSettings& settings) {
  const Region region = region_of(settings, picture.height, picture.width, 2, 5);
  const auto across = exact_weights(region.x, settings.width);
  const auto down = exact_weights(region.y, settings.height);
  const auto result = fitted(settings, picture);
  std::size_t at = 0;
  for (std::uint32_t y = 0; y < settings.height; ++y) {
    for (std::uint32_t x = 0; x < settings.width; ++x) {
      const std::uint32_t source = region.flip ? settings.width - 1 - x : x;
      for (std::uint32_t channel = 0; channel < 3; ++channel, ++at) {
        CHECK(std::fabs(exact(picture, across[source], down[y], channel) - result[at]) < 1.05);
      }
    }
  }
}

void results_are_within_a_level_of_the_definition() {
  check_against_the_definition(noise(40, 53, 1), to(24, 24));
  check_against_the_definition(noise(24, 31, 2), to(50, 33));  // up
  check_against_the_definition(noise(97, 3, 3), to(5, 64));    // both
  check_against_the_definition(noise(200, 300, 4), to(3, 2));  // far down
  ImageSettings settings = to(24, 28);
  settings.flip = true;
  for (const auto crop : {ImageSettings::Crop::centre, ImageSettings::Crop::random}) {
    settings.crop = crop;
    for (settings.seed = 0; settings.seed < 8; ++settings.seed) {
      check_against_the_definition(noise(61, 83, 5), settings);
    }
  }
}

void a_picture_of_that_size_stays_as_it_is() {
  const Picture picture = noise(37, 41, 6);
  CHECK(fitted(to(37, 41), picture) == picture.pixels);
}

void one_colour_stays_that_colour() {
  for (const int value : {0, 1, 127, 255}) {
    Picture picture = noise(300, 401, 7);
    std::fill(picture.pixels.begin(), picture.pixels.end(), static_cast<std::uint8_t>(value));
    for (const std::uint32_t size : {1U, 3U, 64U, 224U, 500U}) {
      for (const std::uint8_t got : fitted(to(size, size), picture)) CHECK(got == value);
    }
  }
}

void one_pixel_fills_any_result() {
  const Picture pixel{1, 1, {10, 20, 30}};
  const auto result = fitted(to(9, 5), pixel);
  for (std::size_t at = 0; at < result.size(); ++at) CHECK(result[at] == 10 * (at % 3 + 1));
}

// As long as JPEG allows: its weights stay fine enough.
void a_very_long_picture_becomes_its_mean() {
  Picture picture = noise(1, 65500, 8);
  double sum = 0.0;
  for (std::uint32_t x = 0; x < picture.width; ++x) {
    sum += picture.at(0, x, 1) * (1.0 - std::fabs(x + 0.5 - 32750) / 65500);
  }
  CHECK(std::abs(fitted(to(1, 1), picture)[1] - sum / (0.75 * 65500)) < 0.6);
}

void a_flipped_result_is_the_mirror_of_the_other() {
  ImageSettings settings = to(20, 31);
  const Picture picture = noise(50, 70, 9);
  const auto straight = fitted(settings, picture);
  settings.flip = true;
  while (!region_of(settings, 50, 70, 2, 5).flip) ++settings.seed;
  const auto flipped = fitted(settings, picture);
  int most = 0;  // a level: weights are rounded from the other side
  for (std::size_t at = 0; at < straight.size(); ++at) {
    const std::size_t pixel = at / 3 % 31;
    const std::size_t mirror = at - 3 * pixel + 3 * (30 - pixel);
    most = std::max(most, std::abs(straight[at] - flipped[mirror]));
  }
  CHECK(most <= 1);
  CHECK(straight != flipped);
}

void all_kernels_give_the_same_bytes() {
  if (avx2_kernels() == nullptr) return;
  Draws draws(10);
  for (int round = 0; round < 300; ++round) {
    const Picture picture = noise(1 + draws.below(90), 1 + draws.below(90), draws.next());
    ImageSettings settings = to(1 + draws.below(70), 1 + draws.below(70));
    settings.crop = static_cast<ImageSettings::Crop>(draws.below(3));
    settings.flip = true;
    settings.seed = draws.next();
    CHECK(fitted_by(plain_kernels(), settings, picture) ==
          fitted_by(*avx2_kernels(), settings, picture));
  }
}

void layouts_hold_the_same_values() {
  ImageSettings settings = to(17, 23);
  const Picture picture = noise(40, 30, 11);
  const auto plain = fitted(settings, picture);
  settings.channels_first = true;
  const auto planes = fitted(settings, picture);
  settings.normalised = true;
  const auto normal_planes = fitted(settings, picture);
  settings.channels_first = false;
  const auto normal = fitted(settings, picture);
  CHECK(normal.size() == 4 * plain.size());
  for (std::size_t at = 0; at < plain.size(); ++at) {
    const std::size_t in_planes = at % 3 * 17 * 23 + at / 3;
    const auto channel = at % 3;
    const double expected = (plain[at] / 255.0 - static_cast<double>(settings.mean[channel])) /
                            static_cast<double>(settings.deviation[channel]);
    float value = 0.0F;
    std::memcpy(&value, &normal[4 * at], 4);
    CHECK(planes[in_planes] == plain[at]);
    CHECK(std::fabs(static_cast<double>(value) - expected) < 1e-6);
    CHECK(std::memcmp(&normal_planes[4 * in_planes], &normal[4 * at], 4) == 0);
  }
}

template <class Error>
void refused(const ImageSettings& settings, const Picture& picture) {
  try {
    fitted(settings, picture);
  } catch (const Error&) {
    return;
  }
  CHECK(false);
}

void sizes_that_cannot_be_are_refused() {
  refused<FeedError>(to(0, 10), noise(4, 4, 12));
  refused<FeedError>(to(10, 70000), noise(4, 4, 12));
  refused<SampleError>(to(10, 10), noise(0, 4, 12));
}

}  // namespace

int main() {
  results_are_within_a_level_of_the_definition();
  a_picture_of_that_size_stays_as_it_is();
  one_colour_stays_that_colour();
  one_pixel_fills_any_result();
  a_very_long_picture_becomes_its_mean();
  a_flipped_result_is_the_mirror_of_the_other();
  all_kernels_give_the_same_bytes();
  layouts_hold_the_same_values();
  sizes_that_cannot_be_are_refused();
}
