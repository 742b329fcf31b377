#pragma once

// The steps in which the rows of a graph are ordered: blocks are grown, coloured, and given places.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/storage.h"
#include "matrix/matrix.h"
#include "ordering/ordering.h"

namespace flowos::solve {

// Rows in blocks, and the graph renumbered so that rows of a block follow one another: as members.
// All blocks but the last have `max_rows` members, so that member / max_rows is its block. Chunks
// are blocks that were grown without a look at the others; they depend on the matrix alone.
struct Blocks {
  int max_rows = 1;
  Raw<std::int32_t> rows;            // of each member, in the order of growth
  Raw<std::int64_t> starts;          // of each member its first link; then all
  Raw<std::int32_t> links;           // the members that it touches, and itself
  std::vector<std::int32_t> chunks;  // of each chunk its first block; then all
  std::vector<char> outer;           // of each block: whether it touches another chunk

  std::int64_t count() const { return chunks.back(); }
  std::int64_t chunk_count() const { return static_cast<std::int64_t>(chunks.size()) - 1; }
  std::int32_t first_of(std::int64_t block) const {
    return static_cast<std::int32_t>(block * max_rows);
  }
  std::int32_t end_of(std::int64_t block) const {
    return static_cast<std::int32_t>(
        std::min<std::int64_t>((block + 1) * max_rows, static_cast<std::int64_t>(rows.size())));
  }
};

template <class Index>
Blocks grow_blocks(const Csr<Index>& matrix, int block_rows, int threads);

// The colour of each block; no two neighbours have the same. at_least: as order_graph()'s
// `colours`.
std::vector<std::int32_t> colour_blocks(const Blocks& blocks, int at_least, int threads);

// Gives blocks to groups and lanes, and rows to steps, so that rows of one step are alike: then
// little of what is stored for a step is padding.
Ordering place_blocks(const Blocks& blocks, const std::vector<std::int32_t>& colours, int lanes,
                      int threads);

}  // namespace flowos::solve
