// Colours of blocks. Those that touch other chunks get theirs first, one after the other; after
// that chunks do not see each other.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "matrix.h"
#include "ordering_graph.h"
#include "ordering_parts.h"

namespace flowos::solve {
namespace {

constexpr std::int32_t kNone = -1;

template <class Index>
class Painter {
 public:
  Painter(const Csr<Index>& matrix, const Blocks& blocks, int wanted,
          std::vector<std::int32_t>& colours)
      : matrix_(matrix),
        blocks_(blocks),
        wanted_(wanted),
        colours_(colours),
        last_(at(wanted), kNone) {}

  void paint(std::int64_t block) {
    for (std::int32_t i = blocks_.starts[at(block)]; i < blocks_.starts[at(block) + 1]; ++i) {
      forbid_around(blocks_.members[at(i)], block);
    }
    colours_[at(block)] = wanted_ > 0 ? next_in_turn(block) : lowest(block);
  }

 private:
  void forbid_around(std::int64_t row, std::int64_t block) {
    for (Index k = matrix_.starts[row]; k < matrix_.starts[row + 1]; ++k) {
      const std::int32_t other = blocks_.block[at(matrix_.columns[k])];
      if (other == block) continue;
      const std::int32_t colour = colours_[at(other)];
      if (colour == kNone) continue;
      if (at(colour) >= last_.size()) last_.resize(at(colour) + 1, kNone);
      last_[at(colour)] = static_cast<std::int32_t>(block);
    }
  }

  bool allowed(std::size_t colour, std::int64_t block) const {
    return colour >= last_.size() || last_[colour] != block;
  }

  std::int32_t lowest(std::int64_t block, std::size_t from = 0) const {
    while (!allowed(from, block)) ++from;
    return static_cast<std::int32_t>(from);
  }

  std::int32_t next_in_turn(std::int64_t block) {
    for (int i = 0; i < wanted_; ++i) {
      const int colour = (turn_ + i) % wanted_;
      if (!allowed(at(colour), block)) continue;
      turn_ = (colour + 1) % wanted_;
      return colour;
    }
    return lowest(block, at(wanted_));
  }

  const Csr<Index>& matrix_;
  const Blocks& blocks_;
  int wanted_;
  std::vector<std::int32_t>& colours_;
  std::vector<std::int32_t> last_;  // of each colour the last block that may not have it
  int turn_ = 0;
};

}  // namespace

template <class Index>
std::vector<std::int32_t> colour_blocks(const Csr<Index>& matrix, const Blocks& blocks, int wanted,
                                        int threads) {
  std::vector<std::int32_t> colours(at(blocks.count()), kNone);
  const auto paint = [&](std::int64_t chunk, char outer, Painter<Index>& painter) {
    for (std::int64_t block = blocks.chunks[at(chunk)]; block < blocks.chunks[at(chunk) + 1];
         ++block) {
      if (blocks.outer[at(block)] == outer) painter.paint(block);
    }
  };
  Painter<Index> of_outer(matrix, blocks, wanted, colours);
  for (std::int64_t chunk = 0; chunk < blocks.chunk_count(); ++chunk) paint(chunk, 1, of_outer);
  for_parts(blocks.chunk_count(), threads, [&](std::int64_t chunk) {
    Painter<Index> painter(matrix, blocks, wanted, colours);
    paint(chunk, 0, painter);
  });
  return colours;
}

template std::vector<std::int32_t> colour_blocks(const Csr<std::int32_t>&, const Blocks&, int, int);
template std::vector<std::int32_t> colour_blocks(const Csr<std::int64_t>&, const Blocks&, int, int);

}  // namespace flowos::solve
