#include "base/crc32c.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#define FLOWOS_CRC32C __attribute__((target("sse4.2")))
#elif defined(__aarch64__) && defined(__linux__)
#include <arm_acle.h>
#include <asm/hwcap.h>
#include <sys/auxv.h>
#define FLOWOS_CRC32C __attribute__((target("+crc")))
#endif

namespace flowos::feed {
namespace {

// Polynomials over GF(2) modulo Castagnoli's, with the bits reflected: bit 31 is the coefficient
// of x^0. To append n zero bytes to what was read is to multiply the register by x^(8n).
constexpr std::uint32_t kPolynomial = 0x82F63B78;

constexpr std::uint32_t times_x(std::uint32_t a) {
  return (a >> 1) ^ ((a & 1U) != 0 ? kPolynomial : 0U);
}

constexpr std::uint32_t product(std::uint32_t a, std::uint32_t b) {
  std::uint32_t sum = 0;
  for (std::uint32_t bit = 1U << 31; bit != 0; bit >>= 1) {
    if ((a & bit) != 0) sum ^= b;
    b = times_x(b);
  }
  return sum;
}

constexpr std::uint32_t power_of_x(std::uint64_t exponent) {
  std::uint32_t result = 1U << 31;
  std::uint32_t square = 1U << 30;
  for (; exponent != 0; exponent >>= 1) {
    if ((exponent & 1U) != 0) result = product(result, square);
    square = product(square, square);
  }
  return result;
}

std::uint64_t little_endian(const std::byte* at) {
  std::uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);
  if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
  return word;
}

// Eight bytes at once by eight tables (Kounavis and Berry, A systematic approach to building high
// performance software-based CRC generators, ISCC 2005).
using Table = std::array<std::uint32_t, 256>;

constexpr std::array<Table, 8> make_slices() {
  std::array<Table, 8> slices{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t state = byte;
    for (int bit = 0; bit < 8; ++bit) state = times_x(state);
    slices[0][byte] = state;
  }
  for (std::size_t slice = 1; slice < 8; ++slice) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t before = slices[slice - 1][byte];
      slices[slice][byte] = (before >> 8) ^ slices[0][before & 0xFF];
    }
  }
  return slices;
}

constexpr std::array<Table, 8> kSlices = make_slices();

std::uint32_t by_tables(std::uint32_t state, const std::byte* at, std::size_t count) {
  for (; count >= 8; at += 8, count -= 8) {
    const std::uint64_t word = little_endian(at) ^ state;
    state = 0;
    for (std::size_t byte = 0; byte < 8; ++byte) {
      state ^= kSlices[7 - byte][(word >> (8 * byte)) & 0xFF];
    }
  }
  for (; count > 0; ++at, --count) {
    state = (state >> 8) ^ kSlices[0][(state ^ std::to_integer<std::uint32_t>(*at)) & 0xFF];
  }
  return state;
}

#ifdef FLOWOS_CRC32C

#if defined(__x86_64__)
FLOWOS_CRC32C inline std::uint64_t eight_more(std::uint64_t state, std::uint64_t word) {
  return _mm_crc32_u64(state, word);
}
FLOWOS_CRC32C inline std::uint32_t one_more(std::uint32_t state, std::byte byte) {
  return _mm_crc32_u8(state, std::to_integer<std::uint8_t>(byte));
}
#else
FLOWOS_CRC32C inline std::uint64_t eight_more(std::uint64_t state, std::uint64_t word) {
  return __crc32cd(static_cast<std::uint32_t>(state), word);
}
FLOWOS_CRC32C inline std::uint32_t one_more(std::uint32_t state, std::byte byte) {
  return __crc32cb(state, std::to_integer<std::uint8_t>(byte));
}
#endif

// The register times x^(8 kBytes), byte by byte of the register.
constexpr std::array<Table, 4> make_shifts(std::uint64_t bytes) {
  const std::uint32_t power = power_of_x(8 * bytes);
  std::array<Table, 4> shifts{};
  for (std::uint32_t part = 0; part < 4; ++part) {
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
      shifts[part][byte] = product(byte << (8 * part), power);
    }
  }
  return shifts;
}

template <std::size_t kBytes>
inline constexpr std::array<Table, 4> kShifts = make_shifts(kBytes);

template <std::size_t kBytes>
std::uint32_t shifted(std::uint64_t state) {
  const std::array<Table, 4>& tables = kShifts<kBytes>;
  return tables[0][state & 0xFF] ^ tables[1][(state >> 8) & 0xFF] ^
         tables[2][(state >> 16) & 0xFF] ^ tables[3][(state >> 24) & 0xFF];
}

// The instruction takes a new word every cycle but gives its result after three: so three streams
// side by side (Gopal and others, Fast CRC computation for iSCSI polynomial using CRC32
// instruction, Intel 2011).
template <std::size_t kBytes>
FLOWOS_CRC32C std::uint32_t three_streams(std::uint32_t state, const std::byte* at) {
  std::uint64_t first = state;
  std::uint64_t second = 0;
  std::uint64_t third = 0;
  for (std::size_t i = 0; i < kBytes; i += 8) {
    first = eight_more(first, little_endian(at + i));
    second = eight_more(second, little_endian(at + kBytes + i));
    third = eight_more(third, little_endian(at + 2 * kBytes + i));
  }
  const std::uint32_t both = shifted<kBytes>(first) ^ static_cast<std::uint32_t>(second);
  return shifted<kBytes>(both) ^ static_cast<std::uint32_t>(third);
}

constexpr std::size_t kLongStream = 4096;
constexpr std::size_t kShortStream = 256;

FLOWOS_CRC32C std::uint32_t by_instruction(std::uint32_t state, const std::byte* at,
                                           std::size_t count) {
  for (; count >= 3 * kLongStream; at += 3 * kLongStream, count -= 3 * kLongStream) {
    state = three_streams<kLongStream>(state, at);
  }
  for (; count >= 3 * kShortStream; at += 3 * kShortStream, count -= 3 * kShortStream) {
    state = three_streams<kShortStream>(state, at);
  }
  std::uint64_t wide = state;
  for (; count >= 8; at += 8, count -= 8) wide = eight_more(wide, little_endian(at));
  state = static_cast<std::uint32_t>(wide);
  for (; count > 0; ++at, --count) state = one_more(state, *at);
  return state;
}

#endif

#if defined(__x86_64__)

// 128 bits are moved D bits towards the beginning by two products of 64 bits: what stands in front
// is multiplied by x^(D + 64), what stands behind by x^D. A product of reflected operands has one
// bit less than its register, and the factor of 32 bits stands in 64: 33 powers of x come by
// themselves (Gopal and others, Fast CRC computation for generic polynomials using PCLMULQDQ
// instruction, Intel 2009).
struct Factors {
  std::uint64_t front, behind;
};

constexpr Factors factors_of(std::uint64_t bits) {
  return {power_of_x(bits + 64 - 33), power_of_x(bits - 33)};
}

#define FLOWOS_FOLD __attribute__((target("avx512f,vpclmulqdq,pclmul,sse4.2")))

template <std::uint64_t kBits>
FLOWOS_FOLD inline __m512i moved_onto(__m512i from, __m512i onto) {
  constexpr Factors factors = factors_of(kBits);
  const __m512i by = _mm512_set4_epi64(
      static_cast<long long>(factors.behind), static_cast<long long>(factors.front),
      static_cast<long long>(factors.behind), static_cast<long long>(factors.front));
  const __m512i front = _mm512_clmulepi64_epi128(from, by, 0x00);
  const __m512i behind = _mm512_clmulepi64_epi128(from, by, 0x11);
  return _mm512_ternarylogic_epi64(front, behind, onto, 0x96);  // exclusive or of the three
}

template <std::uint64_t kBits>
FLOWOS_FOLD inline __m128i moved(__m128i from) {
  constexpr Factors factors = factors_of(kBits);
  const __m128i by =
      _mm_set_epi64x(static_cast<long long>(factors.behind), static_cast<long long>(factors.front));
  return _mm_xor_si128(_mm_clmulepi64_si128(from, by, 0x00), _mm_clmulepi64_si128(from, by, 0x11));
}

template <int kPart>
FLOWOS_FOLD inline __m128i part_of(__m512i sum) {
  return _mm512_maskz_extracti32x4_epi32(0xF, sum, kPart);
}

FLOWOS_FOLD std::uint32_t by_folding(std::uint32_t state, const std::byte* at, std::size_t count) {
  if (count < 512) return by_instruction(state, at, count);
  const __m512i so_far = _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(state)));
  __m512i first = _mm512_xor_si512(_mm512_loadu_si512(at), so_far);
  __m512i second = _mm512_loadu_si512(at + 64);
  __m512i third = _mm512_loadu_si512(at + 128);
  __m512i sum = _mm512_loadu_si512(at + 192);
  for (at += 256, count -= 256; count >= 256; at += 256, count -= 256) {
    first = moved_onto<2048>(first, _mm512_loadu_si512(at));
    second = moved_onto<2048>(second, _mm512_loadu_si512(at + 64));
    third = moved_onto<2048>(third, _mm512_loadu_si512(at + 128));
    sum = moved_onto<2048>(sum, _mm512_loadu_si512(at + 192));
  }
  sum = moved_onto<1536>(first, sum);
  sum = moved_onto<1024>(second, sum);
  sum = moved_onto<512>(third, sum);
  for (; count >= 64; at += 64, count -= 64) sum = moved_onto<512>(sum, _mm512_loadu_si512(at));
  const __m128i front = _mm_xor_si128(moved<384>(part_of<0>(sum)), moved<256>(part_of<1>(sum)));
  const __m128i last =
      _mm_xor_si128(front, _mm_xor_si128(moved<128>(part_of<2>(sum)), part_of<3>(sum)));
  std::uint64_t whole = _mm_crc32_u64(0, static_cast<std::uint64_t>(_mm_cvtsi128_si64(last)));
  const __m128i high = _mm_unpackhi_epi64(last, last);
  whole = _mm_crc32_u64(whole, static_cast<std::uint64_t>(_mm_cvtsi128_si64(high)));
  return by_instruction(static_cast<std::uint32_t>(whole), at, count);
}

#endif

std::vector<Crc32cVariant> usable_variants() {
  std::vector<Crc32cVariant> variants;
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool instruction = __builtin_cpu_supports("sse4.2") != 0;
  if (instruction && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("vpclmulqdq") &&
      __builtin_cpu_supports("pclmul")) {
    variants.push_back({"vpclmulqdq", by_folding});
  }
  if (instruction) variants.push_back({"sse4.2", by_instruction});
#elif defined(FLOWOS_CRC32C)
  if ((getauxval(AT_HWCAP) & HWCAP_CRC32) != 0) variants.push_back({"armv8 crc", by_instruction});
#endif
  variants.push_back({"tables", by_tables});
  return variants;
}

}  // namespace

std::span<const Crc32cVariant> crc32c_variants() {
  static const std::vector<Crc32cVariant> variants = usable_variants();
  return variants;
}

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t so_far) {
  static const auto run = crc32c_variants().front().run;
  return ~run(~so_far, bytes.data(), bytes.size());
}

}  // namespace flowos::feed
