#pragma once

// The steps in which the rows of a graph are ordered: blocks are grown, coloured, and given places.

#include <cstdint>
#include <vector>

#include "matrix.h"
#include "ordering.h"

namespace flowos::solve {

// Rows in blocks. What is done to one chunk of rows that follow one another does not depend on the
// others: blocks never have rows of two chunks. Chunks depend on the matrix alone.
struct Blocks {
  int most_rows = 1;                  // of a block
  std::vector<std::int64_t> rows;     // of each chunk its first row; then all
  std::vector<std::int32_t> chunks;   // of each chunk its first block; then all
  std::vector<std::int32_t> members;  // rows, block after block, in the order of growth
  std::vector<std::int32_t> starts;   // of each block its first member; then all
  std::vector<std::int32_t> block;    // of each row
  std::vector<std::int32_t> step;     // of each row which of its block it is
  std::vector<std::int32_t> inner;    // of each block: entries that tie two rows of it
  std::vector<char> outer;            // of each block: whether a row of it touches another chunk

  std::int64_t count() const { return chunks.back(); }
  std::int64_t chunk_count() const { return static_cast<std::int64_t>(chunks.size()) - 1; }
};

template <class Index>
Blocks grow_blocks(const Csr<Index>& matrix, int block_rows, int threads);

// Of each block its colour; no two neighbours have the same. wanted: as order_graph()'s `colours`.
template <class Index>
std::vector<std::int32_t> colour_blocks(const Csr<Index>& matrix, const Blocks& blocks, int wanted,
                                        int threads);

// Gives blocks to groups and lanes, and rows to steps, so that rows of one step are alike: then
// hardly anything of what is stored for a step is padding.
template <class Index>
Ordering place_blocks(const Csr<Index>& matrix, const Blocks& blocks,
                      const std::vector<std::int32_t>& colours, int lanes, int threads);

}  // namespace flowos::solve
