#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "decode/crop.h"
#include "decode/decoder.h"
#include "decode/resize.h"

namespace flowos::feed {

// How the pixels of a result lie in memory, and of what type they are.
class Layout {
 public:
  explicit Layout(const ImageSettings& settings);

  std::size_t size() const;  // bytes of a result
  std::uint32_t height() const { return height_; }
  std::uint32_t width() const { return width_; }
  std::size_t row_bytes() const { return std::size_t{3} * width_; }  // of RGB, uint8
  // Where RGB rows can be written as they are; else `put` writes one.
  bool plain() const { return !channels_first_ && !normalised_; }
  void put(std::uint32_t y, const std::uint8_t* row, std::byte* into) const;

 private:
  std::uint32_t height_, width_;
  bool channels_first_, normalised_;
  std::array<std::array<float, 256>, 3> normal_{};  // of each channel's values
};

// Turns the rows of a picture, as they come from top to bottom, into a result.
class Fitter {
 public:
  Fitter(const Layout& layout, const Region& region, std::byte* into,
         const RowKernels& kernels = best_kernels());

  // Source rows and columns that are needed: from begin, before end.
  const Weights& rows() const { return y_; }
  const Weights& columns() const { return x_; }
  // The next row of rows(), from the first of columns() on; columns().row_room() bytes can be read.
  void take(const std::uint8_t* row);

 private:
  void finish_row();
  std::uint8_t* kept(std::uint32_t row) { return &kept_[(row % y_.taps) * stride_]; }

  const Layout& layout_;
  const RowKernels& kernels_;
  std::byte* into_;
  Weights x_, y_;
  std::size_t stride_;
  std::vector<std::uint8_t> kept_;             // the last rows, already as wide as the result
  std::vector<const std::uint8_t*> weighted_;  // of these those of one result row
  std::vector<std::uint8_t> finished_;         // a result row, where the layout is not plain
  std::uint32_t taken_ = 0, done_ = 0;
};

}  // namespace flowos::feed
