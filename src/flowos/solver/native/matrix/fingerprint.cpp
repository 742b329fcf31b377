#include "matrix/fingerprint.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/for_each.h"
#include "matrix/matrix.h"

namespace flowos::solve {
namespace {

constexpr std::int64_t kRun = 1 << 15;
constexpr std::int64_t kWord = sizeof(std::uint64_t);
constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15ULL;  // of the keys, as SplitMix64's

// NH (Black et al., UMAC, CRYPTO 1999): both halves of a word and its place's key multiplied,
// by 32 bits, which vectors can.
std::uint64_t mixed(std::uint64_t word, std::uint64_t key) {
  const std::uint64_t sum = word + key;
  return (sum & 0xffffffffU) * (sum >> 32);
}

template <class T>
std::uint64_t sum_of(const T* values, std::int64_t count, std::uint64_t seed, int threads) {
  const auto* bytes = reinterpret_cast<const std::byte*>(values);
  const std::int64_t size = count * static_cast<std::int64_t>(sizeof(T)), words = size / kWord;
  std::atomic<std::uint64_t> all = 0;
  for_runs(words, kRun, threads, [&](std::int64_t first, std::int64_t end) {
    std::uint64_t sum = 0;
    for (std::int64_t i = first; i < end; ++i) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes + i * kWord, kWord);
      sum += mixed(word, seed + static_cast<std::uint64_t>(i + 1) * kStep);
    }
    all += sum;
  });
  std::uint64_t rest = 0;
  std::memcpy(&rest, bytes + words * kWord, static_cast<std::size_t>(size % kWord));
  return all + mixed(rest, seed);
}

}  // namespace

template <class Index>
std::uint64_t fingerprint_of(const Csr<Index>& matrix, int threads) {
  const auto entries = static_cast<std::int64_t>(matrix.starts[matrix.rows]);
  return sum_of(matrix.starts, matrix.rows + 1, 1, threads) +
         3 * sum_of(matrix.columns, entries, 2, threads) +
         5 * sum_of(matrix.values, entries, 3, threads);
}

template std::uint64_t fingerprint_of(const Csr<std::int32_t>&, int);
template std::uint64_t fingerprint_of(const Csr<std::int64_t>&, int);

}  // namespace flowos::solve
