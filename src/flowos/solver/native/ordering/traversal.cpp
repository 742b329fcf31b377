#include "ordering/traversal.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <vector>

#include "base/for_each.h"
#include "matrix/matrix.h"
#include "ordering/graph.h"
#include "ordering/places.h"

namespace flowos::solve {
namespace {

constexpr std::int64_t kMinChunk = 1 << 16;

// The least power of two below which the numbers of nearly all rows differ from those of the rows
// that they touch.
template <class Index>
std::int64_t reach_of(const Csr<Index>& matrix, int threads) {
  constexpr std::int64_t kFew = 20;
  std::vector<std::array<std::int64_t, 65>> counts(
      at((matrix.rows + kMinChunk - 1) / kMinChunk));  // of rows, by the bits of their reach
  for_runs(matrix.rows, kMinChunk, threads, [&](std::int64_t first, std::int64_t past) {
    for (std::int64_t row = first; row < past; ++row) {
      std::uint64_t farthest = 0;
      for (Index k = matrix.starts[row]; k < matrix.starts[row + 1]; ++k) {
        const std::int64_t distance = matrix.columns[k] - row;
        farthest |= static_cast<std::uint64_t>(std::abs(distance));
      }
      ++counts[at(first / kMinChunk)][static_cast<std::size_t>(std::bit_width(farthest))];
    }
  });
  int bits = 64;
  for (std::int64_t beyond = 0; bits > 0; --bits) {
    for (const auto& count : counts) beyond += count[at(bits)];
    if (beyond > matrix.rows / kFew) break;
  }
  return std::int64_t{1} << std::min(bits, 62);
}

template <class Index>
bool touches_outside(const Csr<Index>& matrix, std::int64_t row, const Walk::Chunk& chunk) {
  bool outside = false;
  for (Index k = matrix.starts[row]; k < matrix.starts[row + 1]; ++k) {
    outside |= !chunk.holds(matrix.columns[k]);
  }
  return outside;
}

}  // namespace

template <class Index>
Walk walk_of(const Csr<Index>& matrix, int threads) {
  constexpr std::int64_t kReaches = 8;  // of a chunk
  constexpr int kGrownRows = 32;
  check_places(matrix.rows, 1, 1);
  const std::int64_t reach = reach_of(matrix, threads);
  Walk walk;
  walk.chunk_rows = std::max(kMinChunk, kReaches * reach);
  if (matrix.rows > kMinChunk && walk.chunk_rows > matrix.rows) {
    walk.rows = grow_blocks(matrix, kGrownRows, threads).rows;
    walk.chunk_rows = matrix.rows;
    return walk;
  }
  walk.rows.resize(at(matrix.rows));
  std::iota(walk.rows.begin(), walk.rows.end(), 0);
  std::vector<std::vector<std::int32_t>> outer(at(walk.chunks()));
  walk.each_chunk(threads, [&](const Walk::Chunk& chunk) {
    for (const std::int32_t row : chunk.rows) {
      if (touches_outside(matrix, row, chunk)) outer[at(chunk.number)].push_back(row);
    }
  });
  for (const auto& rows : outer) walk.outer.insert(walk.outer.end(), rows.begin(), rows.end());
  return walk;
}

template Walk walk_of(const Csr<std::int32_t>&, int);
template Walk walk_of(const Csr<std::int64_t>&, int);

}  // namespace flowos::solve
