#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "decode/crop.h"

namespace flowos::feed {

// One axis of an antialiased bilinear resize, as Pillow's BILINEAR: a result pixel is the mean of
// the source pixels around its centre, weighted by a triangle whose half width is one result pixel,
// and at least one source pixel. In integers, so that it gives the same on every machine.
struct Weights {
  Weights(const Range& range, std::uint32_t result_size, bool reversed);

  std::uint32_t size;                 // result pixels
  std::uint32_t begin, end;           // source pixels that are needed
  std::uint32_t taps;                 // places for weights of a result pixel: a multiple of four
  unsigned precision;                 // the weights of a result pixel add up to 2^precision
  std::vector<std::uint32_t> counts;  // how many of its weights are used; the others are 0
  // Its first source pixel, counted from begin. This and the weights are filled up with 0 to a
  // multiple of four result pixels.
  std::vector<std::uint32_t> first;
  std::vector<std::int16_t> weights;

  // Bytes of a row of RGB, from begin on, that can be read for weights that are 0.
  std::size_t row_room() const { return std::size_t{3} * (end - begin + taps) + 4; }
  std::span<const std::int16_t> of(std::uint32_t pixel) const {
    return {weights.data() + std::size_t{pixel} * taps, counts[pixel]};
  }
};

// So many bytes after the end of its result are written by `across`.
constexpr std::size_t result_slack = 16;

// The two passes, by row. All sets of kernels give the same bytes.
struct RowKernels {
  // Of a row of RGB from source pixel x.begin on, of which x.row_room() bytes can be read.
  void (*across)(const Weights& x, const std::uint8_t* row, std::uint8_t* result);
  // The weighted mean of rows; a weight for each. Nothing after `bytes` is read or written.
  void (*down)(std::span<const std::uint8_t* const> rows, const std::int16_t* weights,
               unsigned precision, std::size_t bytes, std::uint8_t* result);
};

const RowKernels& plain_kernels();
const RowKernels* avx2_kernels();  // null: not on this machine
const RowKernels& best_kernels();

}  // namespace flowos::feed
