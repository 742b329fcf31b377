#pragma once

#include <cstdint>

#include "decode/decoder.h"

namespace flowos::feed {

// Random numbers that are a function of (seed, epoch, sample) and of how many came before:
// SplitMix64 (Steele, Lea and Flood, Fast splittable pseudorandom number generators, OOPSLA 2014).
class Draws {
 public:
  explicit Draws(std::uint64_t state) : state_(state) {}
  Draws(std::uint64_t seed, std::uint64_t epoch, std::uint64_t sample);

  std::uint64_t next();
  double uniform(double low, double high);   // low <= result < high
  std::uint32_t below(std::uint32_t count);  // 0 <= result < count

 private:
  std::uint64_t state_;
};

// One axis of a picture. In pixels, whose centres are at 0.5, 1.5 and so on.
struct Range {
  double begin, end;          // this part fills the result
  std::uint32_t first, past;  // pixels of [first, past) may be looked at; begin and end lie within
};

// What of a picture is to be seen.
struct Region {
  Range x, y;
  bool flip;
};

// centre: as torchvision's Resize and then CenterCrop, which read pixels around the crop too;
//   of a result that is not square, the side that is scaled is the one that then covers both.
// random: as torchvision's RandomResizedCrop, which looks at the crop alone.
// height, width: of the picture, > 0.
Region region_of(const ImageSettings& settings, std::uint32_t height, std::uint32_t width,
                 std::uint64_t epoch, std::uint64_t sample);

}  // namespace flowos::feed
