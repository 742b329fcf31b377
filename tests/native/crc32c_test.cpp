#include "base/crc32c.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iostream>
#include <numeric>
#include <random>
#include <span>
#include <string_view>
#include <vector>

#include "check.h"

using flowos::feed::crc32c;
using flowos::feed::crc32c_variants;
using flowos::feed::Crc32cVariant;

namespace {

std::uint32_t of(std::string_view text) { return crc32c(std::as_bytes(std::span(text))); }

// As the polynomial's definition says, bit by bit.
std::uint32_t defined(std::span<const std::byte> bytes) {
  std::uint32_t state = ~0U;
  for (const std::byte byte : bytes) {
    state ^= std::to_integer<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) {
      state = (state >> 1) ^ ((state & 1U) != 0 ? 0x82F63B78U : 0U);
    }
  }
  return ~state;
}

std::vector<std::byte> noise(std::size_t count) {
  std::mt19937 random(7);
  std::vector<std::byte> bytes(count);
  std::ranges::generate(bytes, [&] { return static_cast<std::byte>(random()); });
  return bytes;
}

void the_examples_of_rfc_3720_come_out() {
  std::array<std::byte, 32> bytes{};
  CHECK(crc32c(bytes) == 0x8A9136AA);
  bytes.fill(std::byte{0xFF});
  CHECK(crc32c(bytes) == 0x62A8AB43);
  for (std::size_t i = 0; i < 32; ++i) bytes[i] = static_cast<std::byte>(i);
  CHECK(crc32c(bytes) == 0x46DD794E);
  std::ranges::reverse(bytes);
  CHECK(crc32c(bytes) == 0x113FDB5C);
  CHECK(of("123456789") == 0xE3069283);
  CHECK(of("") == 0);
}

void every_way_follows_the_definition(std::span<const std::byte> bytes) {
  std::vector<std::size_t> counts(1100);
  std::iota(counts.begin(), counts.end(), 0);
  for (const std::size_t count :
       std::initializer_list<std::size_t>{3071, 3072, 12287, 12288, 12289, 16384, 41003, 65536}) {
    counts.push_back(count);
  }
  for (const std::size_t count : counts) {
    const auto piece = bytes.subspan(count % 67, count);
    const std::uint32_t expected = defined(piece);
    for (const Crc32cVariant& variant : crc32c_variants()) {
      CHECK(~variant.run(~0U, piece.data(), piece.size()) == expected);
    }
  }
}

void pieces_give_what_the_whole_gives(std::span<const std::byte> bytes) {
  const std::uint32_t whole = crc32c(bytes);
  for (const std::size_t cut :
       std::initializer_list<std::size_t>{0, 1, 7, 512, 4096, 30001, 65535}) {
    for (const Crc32cVariant& variant : crc32c_variants()) {
      const std::uint32_t state = variant.run(~0U, bytes.data(), cut);
      CHECK(~variant.run(state, bytes.data() + cut, bytes.size() - cut) == whole);
    }
    CHECK(crc32c(bytes.subspan(cut), crc32c(bytes.first(cut))) == whole);
  }
}

void a_flipped_bit_is_seen(std::vector<std::byte> bytes) {
  const std::uint32_t whole = crc32c(bytes);
  for (std::size_t bit = 0; bit < 8 * bytes.size(); bit += 8191) {
    bytes[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    CHECK(crc32c(bytes) != whole);
    bytes[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
  }
}

}  // namespace

int main() {
  for (const Crc32cVariant& variant : crc32c_variants())
    std::cout << "crc32c by " << variant.name << '\n';
  const std::vector<std::byte> bytes = noise(66000);
  the_examples_of_rfc_3720_come_out();
  every_way_follows_the_definition(bytes);
  pieces_give_what_the_whole_gives(bytes);
  a_flipped_bit_is_seen(bytes);
}
