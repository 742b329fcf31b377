#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace flowos::feed {

// Turns the bytes of a sample into its part of a batch. Safe to use from many threads. What is
// random in it is a function of (seed, epoch, sample) only.
class Decoder {
 public:
  virtual ~Decoder() = default;
  // Bytes that every decoded sample takes.
  virtual std::size_t size() const = 0;
  // SampleError without the sample's name: what is wrong with these bytes.
  virtual void decode(std::span<const std::byte> bytes, std::uint64_t epoch, std::uint64_t sample,
                      std::byte* into) const = 0;
};

struct ImageSettings {
  std::uint32_t height = 224, width = 224;
  enum class Crop { centre, random, none } crop = Crop::centre;
  // centre: the picture is first scaled so that it just covers (height, width) / centre_share.
  double centre_share = 0.875;
  // random: area and aspect as of torchvision's RandomResizedCrop.
  std::array<double, 2> area = {0.08, 1.0}, aspect = {3.0 / 4.0, 4.0 / 3.0};
  bool flip = false;  // left and right exchanged for half of the samples
  bool channels_first = false;
  bool normalised = false;  // float32: (value / 255 - mean) / deviation; else uint8
  std::array<float, 3> mean = {0.485F, 0.456F, 0.406F}, deviation = {0.229F, 0.224F, 0.225F};
  std::uint64_t seed = 0;
};

// JPEG by libjpeg-turbo, antialiased bilinear resize as of Pillow. FeedError where this build has
// no libjpeg.
std::unique_ptr<const Decoder> jpeg_decoder(const ImageSettings& settings);

// The second half by itself, for pictures that something else decoded: `pixels` is height x width
// x 3, uint8, rows without gaps.
void fit_pixels(const ImageSettings& settings, std::span<const std::byte> pixels,
                std::uint32_t height, std::uint32_t width, std::uint64_t epoch,
                std::uint64_t sample, std::byte* into);

}  // namespace flowos::feed
