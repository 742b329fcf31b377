// Colours of blocks. Those that touch other chunks get theirs first, one after the other; after
// that chunks do not see each other.

#include <cstdint>
#include <vector>

#include "base/for_each.h"
#include "ordering/graph.h"
#include "ordering/painter.h"

namespace flowos::solve {

std::vector<std::int32_t> colour_blocks(const Blocks& blocks, int at_least, int threads) {
  std::vector<std::int32_t> colours(at(blocks.count()), kNoColour);
  const auto paint = [&](std::int32_t block, Painter& painter) {
    const std::int64_t past = blocks.starts[at(blocks.end_of(block))];
    for (std::int64_t k = blocks.starts[at(blocks.first_of(block))]; k < past; ++k) {
      painter.forbid(colours[at(blocks.links[at(k)] / blocks.max_rows)], block);
    }
    colours[at(block)] = painter.choose(block);
  };
  const auto paint_chunk = [&](std::int64_t chunk, bool outer, Painter& painter) {
    const std::int32_t end = blocks.chunks[at(chunk) + 1];
    for (std::int32_t block = blocks.chunks[at(chunk)]; block < end; ++block) {
      if ((blocks.outer[at(block)] != 0) == outer) paint(block, painter);
    }
  };
  Painter of_outer(at_least);
  for (std::int64_t chunk = 0; chunk < blocks.chunk_count(); ++chunk) {
    paint_chunk(chunk, true, of_outer);
  }
  for_parts(blocks.chunk_count(), threads, [&](std::int64_t chunk) {
    Painter painter(at_least);
    paint_chunk(chunk, false, painter);
  });
  return colours;
}

}  // namespace flowos::solve
