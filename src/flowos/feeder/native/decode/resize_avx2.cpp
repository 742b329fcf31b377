// The two passes of resize.h with AVX2, chosen when the program runs: the rest of the library is
// built for every x86-64.

#include "decode/resize.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#define FLOWOS_AVX2 __attribute__((target("avx2")))

namespace flowos::feed {
namespace {

// Two of the int16 weights, as one number that can be spread over a register.
std::int32_t pair_at(const std::int16_t* weights) {
  std::int32_t pair;
  std::memcpy(&pair, weights, sizeof pair);
  return pair;
}

// Pairs of bytes as pairs of int16: red, green, blue of two neighbouring pixels, and nothing.
FLOWOS_AVX2 __m256i pairs_of_pixels(std::int8_t first) {
  const auto at = [first](int byte) { return static_cast<char>(first + byte); };
  return _mm256_broadcastsi128_si256(_mm_setr_epi8(at(0), -1, at(3), -1, at(1), -1, at(4), -1,
                                                   at(2), -1, at(5), -1, -1, -1, -1, -1));
}

// Where two result pixels, one for each half of a register, come from.
struct Two {
  const std::uint8_t *a, *b;
  const std::int16_t *a_weights, *b_weights;
};

FLOWOS_AVX2 __m256i two_weights(const Two& two, std::uint32_t tap) {
  return _mm256_blend_epi32(_mm256_set1_epi32(pair_at(two.a_weights + tap)),
                            _mm256_set1_epi32(pair_at(two.b_weights + tap)), 0xF0);
}

// Red, green, blue of two result pixels, not yet shifted.
FLOWOS_AVX2 __m256i two_pixels(const Two& two, std::uint32_t taps, __m256i sum) {
  const __m256i front = pairs_of_pixels(0);
  const __m256i back = pairs_of_pixels(6);
  for (std::uint32_t tap = 0; tap < taps; tap += 4) {
    const std::size_t at = std::size_t{3} * tap;
    const __m256i bytes = _mm256_inserti128_si256(
        _mm256_castsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(two.a + at))),
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(two.b + at)), 1);
    sum = _mm256_add_epi32(
        sum, _mm256_madd_epi16(_mm256_shuffle_epi8(bytes, front), two_weights(two, tap)));
    sum = _mm256_add_epi32(
        sum, _mm256_madd_epi16(_mm256_shuffle_epi8(bytes, back), two_weights(two, tap + 2)));
  }
  return sum;
}

// Four result pixels a turn. kTaps: as x.taps, where the compiler is to know it; else 0.
template <std::uint32_t kTaps>
FLOWOS_AVX2 void across_by(const Weights& x, const std::uint8_t* row, std::uint8_t* result) {
  const std::uint32_t taps = kTaps == 0 ? x.taps : kTaps;
  const std::uint32_t* first = x.first.data();
  const std::int16_t* weights = x.weights.data();
  const __m256i half = _mm256_set1_epi32(1 << (x.precision - 1));
  const __m128i precision = _mm_cvtsi32_si128(static_cast<int>(x.precision));
  const __m256i without_gaps = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(0, 1, 2, 4, 5, 6, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1));
  const std::uint32_t* const end = first + x.first.size();
  for (; first != end; first += 4, weights += std::size_t{4} * taps, result += 12) {
    const auto two = [&](std::uint32_t pixel) {
      return Two{row + std::size_t{3} * first[pixel], row + std::size_t{3} * first[pixel + 2],
                 weights + std::size_t{pixel} * taps, weights + (std::size_t{pixel} + 2) * taps};
    };
    const __m256i even = _mm256_sra_epi32(two_pixels(two(0), taps, half), precision);
    const __m256i odd = _mm256_sra_epi32(two_pixels(two(1), taps, half), precision);
    const __m256i words = _mm256_packs_epi32(even, odd);
    const __m256i bytes = _mm256_shuffle_epi8(_mm256_packus_epi16(words, words), without_gaps);
    _mm_storel_epi64(reinterpret_cast<__m128i*>(result), _mm256_castsi256_si128(bytes));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(result + 6), _mm256_extracti128_si256(bytes, 1));
  }
}

FLOWOS_AVX2 void across(const Weights& x, const std::uint8_t* row, std::uint8_t* result) {
  x.taps == 4 ? across_by<4>(x, row, result) : across_by<0>(x, row, result);
}

using Rows = std::span<const std::uint8_t* const>;

// 32 bytes of the result.
FLOWOS_AVX2 __m256i block(Rows rows, const std::int16_t* weights, unsigned precision,
                          std::size_t at) {
  const __m256i none = _mm256_setzero_si256();
  const __m128i shift = _mm_cvtsi32_si128(static_cast<int>(precision));
  __m256i sums[4];
  for (__m256i& sum : sums) sum = _mm256_set1_epi32(1 << (precision - 1));
  for (std::size_t row = 0; row < rows.size(); row += 2) {
    const bool both = row + 1 < rows.size();
    const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows[row] + at));
    const __m256i b =
        both ? _mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows[row + 1] + at)) : none;
    const __m256i pair = _mm256_set1_epi32(
        both ? pair_at(weights + row) : std::int32_t{static_cast<std::uint16_t>(weights[row])});
    const __m256i low = _mm256_unpacklo_epi8(a, b);
    const __m256i high = _mm256_unpackhi_epi8(a, b);
    const __m256i words[4] = {_mm256_unpacklo_epi8(low, none), _mm256_unpackhi_epi8(low, none),
                              _mm256_unpacklo_epi8(high, none), _mm256_unpackhi_epi8(high, none)};
    for (int i = 0; i < 4; ++i) {
      sums[i] = _mm256_add_epi32(sums[i], _mm256_madd_epi16(words[i], pair));
    }
  }
  for (__m256i& sum : sums) sum = _mm256_sra_epi32(sum, shift);
  return _mm256_packus_epi16(_mm256_packs_epi32(sums[0], sums[1]),
                             _mm256_packs_epi32(sums[2], sums[3]));
}

FLOWOS_AVX2 void down(Rows rows, const std::int16_t* weights, unsigned precision, std::size_t bytes,
                      std::uint8_t* result) {
  constexpr std::size_t width = 32;
  if (bytes < width) return plain_kernels().down(rows, weights, precision, bytes, result);
  for (std::size_t begin = 0; begin < bytes; begin += width) {
    const std::size_t at = begin + width <= bytes ? begin : bytes - width;
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(result + at),
                        block(rows, weights, precision, at));
  }
}

}  // namespace

const RowKernels* avx2_kernels() {
  static constexpr RowKernels kernels{across, down};
  return __builtin_cpu_supports("avx2") ? &kernels : nullptr;
}

}  // namespace flowos::feed

#else

namespace flowos::feed {

const RowKernels* avx2_kernels() { return nullptr; }

}  // namespace flowos::feed

#endif
