#include "dominance.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "matrix.h"
#include "ordering_parts.h"

namespace flowos::solve {
namespace {

constexpr std::int64_t kRun = 1 << 14;

template <class Index>
Dominance seen_in(const Csr<Index>& matrix, std::int64_t first, std::int64_t past) {
  constexpr double kRounding = 1e-10;
  Dominance seen;
  for (std::int64_t row = first; row < past; ++row) {
    double diagonal = 0, others = 0;
    for (Index k = matrix.starts[row]; k < matrix.starts[row + 1]; ++k) {
      if (matrix.columns[k] == row) {
        diagonal += matrix.values[k];
      } else {
        others += std::fabs(matrix.values[k]);
      }
    }
    seen.greatest = std::max(seen.greatest, diagonal);
    seen.share += others / diagonal;
    if (others > diagonal * (1 + kRounding)) seen.everywhere = false;
  }
  return seen;
}

}  // namespace

// Runs are of a fixed size, so that their sum is the same whatever the threads.
template <class Index>
Dominance dominance_of(const Csr<Index>& matrix, int threads) {
  std::vector<Dominance> seen(at((matrix.rows + kRun - 1) / kRun));
  for_runs(matrix.rows, kRun, threads, [&](std::int64_t first, std::int64_t past) {
    seen[at(first / kRun)] = seen_in(matrix, first, past);
  });
  Dominance result;
  for (const Dominance& run : seen) {
    result.greatest = std::max(result.greatest, run.greatest);
    result.everywhere = result.everywhere && run.everywhere;
    result.share += run.share;
  }
  result.share /= static_cast<double>(matrix.rows);
  return result;
}

template Dominance dominance_of(const Csr<std::int32_t>&, int);
template Dominance dominance_of(const Csr<std::int64_t>&, int);

}  // namespace flowos::solve
