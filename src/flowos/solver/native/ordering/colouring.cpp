// Colours of blocks. Those that touch other chunks get theirs first, one after the other; after
// that chunks do not see each other.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/for_each.h"
#include "ordering/graph.h"

namespace flowos::solve {
namespace {

constexpr std::int32_t kNone = -1;

class Painter {
 public:
  Painter(const Blocks& blocks, int wanted, std::vector<std::int32_t>& colours)
      : blocks_(blocks), wanted_(wanted), colours_(colours), last_(at(wanted) + 1, kNone) {}

  // The block itself has no colour yet.
  void paint(std::int64_t block) {
    const std::int64_t past = blocks_.starts[at(blocks_.end_of(block))];
    for (std::int64_t k = blocks_.starts[at(blocks_.first_of(block))]; k < past; ++k) {
      const std::int32_t link = blocks_.links[at(k)];
      forbid(colours_[at(link / blocks_.max_rows)], block);
    }
    colours_[at(block)] = wanted_ > 0 ? next_in_turn(block) : lowest(block, 0);
  }

 private:
  void forbid(std::int32_t colour, std::int64_t block) {
    if (number_of(colour) >= last_.size()) last_.resize(number_of(colour) + 1, kNone);
    last_[number_of(colour)] = static_cast<std::int32_t>(block);
  }

  bool allowed(std::int32_t colour, std::int64_t block) const {
    return number_of(colour) >= last_.size() || last_[number_of(colour)] != block;
  }

  // That of kNone is the first.
  static std::size_t number_of(std::int32_t colour) { return at(colour - kNone); }

  std::int32_t lowest(std::int64_t block, std::int32_t from) const {
    while (!allowed(from, block)) ++from;
    return from;
  }

  std::int32_t next_in_turn(std::int64_t block) {
    for (int i = 0; i < wanted_; ++i) {
      const int colour = (turn_ + i) % wanted_;
      if (!allowed(colour, block)) continue;
      turn_ = (colour + 1) % wanted_;
      return colour;
    }
    return lowest(block, wanted_);
  }

  const Blocks& blocks_;
  int wanted_;
  std::vector<std::int32_t>& colours_;
  std::vector<std::int32_t> last_;  // of kNone, and of each colour: the last block beside it
  int turn_ = 0;
};

}  // namespace

std::vector<std::int32_t> colour_blocks(const Blocks& blocks, int wanted, int threads) {
  std::vector<std::int32_t> colours(at(blocks.count()), kNone);
  const auto paint = [&](std::int64_t chunk, bool outer, Painter& painter) {
    const std::int32_t end = blocks.chunks[at(chunk) + 1];
    for (std::int32_t block = blocks.chunks[at(chunk)]; block < end; ++block) {
      if ((blocks.outer[at(block)] != 0) == outer) painter.paint(block);
    }
  };
  Painter of_outer(blocks, wanted, colours);
  for (std::int64_t chunk = 0; chunk < blocks.chunk_count(); ++chunk) paint(chunk, true, of_outer);
  for_parts(blocks.chunk_count(), threads, [&](std::int64_t chunk) {
    Painter painter(blocks, wanted, colours);
    paint(chunk, false, painter);
  });
  return colours;
}

}  // namespace flowos::solve
