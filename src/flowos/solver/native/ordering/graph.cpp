#include "ordering/graph.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "matrix/matrix.h"
#include "ordering/ordering.h"

namespace flowos::solve {

template <class Index>
Ordering order_graph(const Csr<Index>& matrix, int block_rows, int colours, int lanes,
                     int threads) {
  const auto most =
      static_cast<int>(std::clamp<std::int64_t>(matrix.rows, 1, std::max(block_rows, 1)));
  const Blocks blocks = grow_blocks(matrix, most, threads);
  const std::vector<std::int32_t> chosen = colour_blocks(blocks, colours, threads);
  return place_blocks(blocks, chosen, lanes, threads);
}

template Ordering order_graph(const Csr<std::int32_t>&, int, int, int, int);
template Ordering order_graph(const Csr<std::int64_t>&, int, int, int, int);

}  // namespace flowos::solve
