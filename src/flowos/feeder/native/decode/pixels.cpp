#include "decode/pixels.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "base/errors.h"
#include "decode/crop.h"
#include "decode/decoder.h"
#include "decode/resize.h"

namespace flowos::feed {
namespace {

constexpr std::uint32_t max_side = 65535;  // as of JPEG

// `number` says what a channel's value becomes.
template <class T, class Number>
void put_row(const std::uint8_t* row, std::uint32_t width, std::size_t pixel_step,
             std::size_t channel_step, T* into, const Number& number) {
  for (std::size_t channel = 0; channel < 3; ++channel) {
    T* at = into + channel * channel_step;
    for (std::uint32_t x = 0; x < width; ++x) {
      at[x * pixel_step] = number(channel, row[3 * std::size_t{x} + channel]);
    }
  }
}

}  // namespace

Layout::Layout(const ImageSettings& settings)
    : height_(settings.height),
      width_(settings.width),
      channels_first_(settings.channels_first),
      normalised_(settings.normalised) {
  if (std::min(height_, width_) < 1 || std::max(height_, width_) > max_side) {
    throw FeedError("pictures are decoded to 1 to 65535 pixels a side");
  }
  for (std::size_t channel = 0; channel < 3; ++channel) {
    for (std::size_t value = 0; value < 256; ++value) {
      normal_[channel][value] =
          static_cast<float>((static_cast<double>(value) / 255.0 - settings.mean[channel]) /
                             settings.deviation[channel]);
    }
  }
}

std::size_t Layout::size() const {
  return row_bytes() * height_ * (normalised_ ? sizeof(float) : 1);
}

void Layout::put(std::uint32_t y, const std::uint8_t* row, std::byte* into) const {
  const std::size_t plane = std::size_t{height_} * width_;
  const std::size_t pixel_step = channels_first_ ? 1 : 3;
  const std::size_t channel_step = channels_first_ ? plane : 1;
  const std::size_t begin = pixel_step * width_ * y;
  if (normalised_) {
    put_row(row, width_, pixel_step, channel_step, reinterpret_cast<float*>(into) + begin,
            [this](std::size_t channel, std::uint8_t value) { return normal_[channel][value]; });
  } else {
    put_row(row, width_, pixel_step, channel_step, reinterpret_cast<std::uint8_t*>(into) + begin,
            [](std::size_t, std::uint8_t value) { return value; });
  }
}

Fitter::Fitter(const Layout& layout, const Region& region, std::byte* into,
               const RowKernels& kernels)
    : layout_(layout),
      kernels_(kernels),
      into_(into),
      x_(region.x, layout.width(), region.flip),
      y_(region.y, layout.height(), false),
      stride_(layout.row_bytes() + result_slack),
      kept_(stride_ * y_.taps),
      weighted_(y_.taps),
      finished_(layout.plain() ? 0 : layout.row_bytes()) {}

void Fitter::take(const std::uint8_t* row) {
  kernels_.across(x_, row, kept(taken_++));
  while (done_ < layout_.height() && y_.first[done_] + y_.counts[done_] <= taken_) finish_row();
}

void Fitter::finish_row() {
  const std::span<const std::int16_t> weights = y_.of(done_);
  for (std::uint32_t row = 0; row < weights.size(); ++row) {
    weighted_[row] = kept(y_.first[done_] + row);
  }
  std::uint8_t* result = layout_.plain()
                             ? reinterpret_cast<std::uint8_t*>(into_) + layout_.row_bytes() * done_
                             : finished_.data();
  kernels_.down({weighted_.data(), weights.size()}, weights.data(), y_.precision,
                layout_.row_bytes(), result);
  if (!layout_.plain()) layout_.put(done_, result, into_);
  ++done_;
}

void fit_pixels(const ImageSettings& settings, std::span<const std::byte> pixels,
                std::uint32_t height, std::uint32_t width, std::uint64_t epoch,
                std::uint64_t sample, std::byte* into) {
  if (height == 0 || width == 0) throw SampleError("the picture has no pixels");
  const Layout layout(settings);
  Fitter fitter(layout, region_of(settings, height, width, epoch, sample), into);
  const Weights& columns = fitter.columns();
  const std::size_t bytes = std::size_t{3} * (columns.end - columns.begin);
  std::vector<std::uint8_t> row(columns.row_room());
  for (std::uint32_t y = fitter.rows().begin; y < fitter.rows().end; ++y) {
    const std::size_t at = std::size_t{3} * (std::size_t{y} * width + columns.begin);
    std::memcpy(row.data(), pixels.data() + at, bytes);
    fitter.take(row.data());
  }
}

}  // namespace flowos::feed
