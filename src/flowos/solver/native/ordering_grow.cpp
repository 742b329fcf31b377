// Blocks of rows, grown row by row.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "matrix.h"
#include "ordering_graph.h"
#include "ordering_parts.h"

namespace flowos::solve {
namespace {

constexpr std::int64_t kChunkRows = 1 << 17;
constexpr std::int64_t kRunRows = 1 << 14;

// What growth looks at besides the entries: 1 / sqrt of the diagonal, so that what ties rows is
// |a_ij| / sqrt(a_ii a_jj).
struct Scale {
  std::vector<float> of_row;
  std::int64_t far = 0;  // entries that tie rows of two chunks
};

template <class Index>
Scale scale_of(const Csr<Index>& matrix, int threads) {
  Scale scale;
  scale.of_row.resize(at(matrix.rows));
  std::vector<std::int64_t> far(at((matrix.rows + kRunRows - 1) / kRunRows));
  for_runs(matrix.rows, kRunRows, threads, [&](std::int64_t first, std::int64_t end) {
    const std::int64_t chunk = first / kChunkRows * kChunkRows;
    std::int64_t count = 0;
    for (std::int64_t row = first; row < end; ++row) {
      double diagonal = 0;
      for (Index k = matrix.starts[row]; k < matrix.starts[row + 1]; ++k) {
        const std::int64_t column = matrix.columns[k];
        if (column == row) diagonal += matrix.values[k];
        count += column < chunk || column >= chunk + kChunkRows ? 1 : 0;
      }
      scale.of_row[at(row)] = diagonal > 0 ? static_cast<float>(1 / std::sqrt(diagonal)) : 0.0F;
    }
    far[at(first / kRunRows)] = count;
  });
  for (const std::int64_t count : far) scale.far += count;
  return scale;
}

// Of each chunk its first row; then all. Only one where rows are not numbered near their
// neighbours.
std::vector<std::int64_t> chunks_of(std::int64_t rows, std::int64_t entries, std::int64_t far) {
  constexpr std::int64_t kFew = 10;
  const std::int64_t count =
      far > entries / kFew ? 1 : std::max<std::int64_t>(1, rows / kChunkRows);
  std::vector<std::int64_t> first(at(count + 1));
  for (std::int64_t chunk = 0; chunk < count; ++chunk) first[at(chunk)] = chunk * kChunkRows;
  first[at(count)] = rows;
  return first;
}

// Grows the blocks of a chunk: a block takes the row that is tied to it most, of those the one that
// it has touched longest, until it is full. The next one begins where an earlier one left off.
template <class Index>
class Growth {
 public:
  Growth(const Csr<Index>& matrix, const Scale& scale, Blocks& blocks, std::int64_t chunk)
      : matrix_(matrix),
        scale_(scale.of_row.data()),
        blocks_(blocks),
        step_(blocks.step.data()),
        first_(blocks.rows[at(chunk)]),
        end_(blocks.rows[at(chunk) + 1]),
        block_(blocks.chunks[at(chunk)]),
        taken_(first_),
        lowest_(first_) {}

  void run() {
    while (taken_ < end_) {
      grow(std::min(taken_ + blocks_.most_rows, end_));
      ++block_;
    }
  }

 private:
  // Of a row, in step_, before it has one. Candidates have kFree - 1 less their number.
  static constexpr std::int32_t kFree = -1;
  static constexpr std::int64_t kGone = -1;

  struct Candidate {
    std::int64_t tie;  // to the block
    std::int32_t row;
    std::int32_t entries;  // that tie it
  };

  void grow(std::int64_t full) {
    inner_ = 0;
    while (taken_ < full) {
      const std::size_t best = strongest();
      if (best < candidates_.size()) {
        candidates_[best].tie = kGone;
        inner_ += candidates_[best].entries;
        take(candidates_[best].row);
      } else {
        take(next_seed());
      }
    }
    blocks_.inner[at(block_)] = inner_;
    for (const Candidate& left : candidates_) {
      if (left.tie == kGone) continue;
      step_[left.row] = kFree;
      front_.push_back(left.row);
    }
    candidates_.clear();
  }

  std::size_t strongest() const {
    std::size_t best = candidates_.size();
    std::int64_t tie = kGone;
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      if (candidates_[i].tie > tie) {
        tie = candidates_[i].tie;
        best = i;
      }
    }
    return best;
  }

  // A row that a finished block has touched, the earliest; else the first that is left.
  std::int32_t next_seed() {
    for (; reached_ < front_.size(); ++reached_) {
      if (step_[front_[reached_]] == kFree) return front_[reached_];
    }
    while (step_[lowest_] != kFree) ++lowest_;
    return static_cast<std::int32_t>(lowest_);
  }

  void take(std::int32_t row) {
    step_[row] = static_cast<std::int32_t>((taken_ - first_) % blocks_.most_rows);
    blocks_.members[at(taken_++)] = row;
    blocks_.block[at(row)] = block_;
    for (Index k = matrix_.starts[row]; k < matrix_.starts[row + 1]; ++k) {
      const std::int64_t column = matrix_.columns[k];
      if (column < first_ || column >= end_) {
        blocks_.outer[at(block_)] = 1;
        continue;
      }
      const std::int32_t step = step_[column];
      if (step >= 0) continue;
      const std::int64_t tie = tie_of(matrix_.values[k], row, column);
      if (step == kFree) {
        step_[column] = kFree - 1 - static_cast<std::int32_t>(candidates_.size());
        candidates_.push_back({.tie = tie, .row = static_cast<std::int32_t>(column), .entries = 1});
      } else {
        Candidate& candidate = candidates_[at(kFree - 1 - step)];
        candidate.tie += tie;
        ++candidate.entries;
      }
    }
  }

  // In whole numbers, so that the sum does not depend on the order. At most 1 where the matrix is
  // positive definite; what it is else does not matter.
  std::int64_t tie_of(double value, std::int64_t row, std::int64_t column) const {
    constexpr double kOne = 1 << 20;
    const double tie = std::abs(value) * scale_[row] * scale_[column];
    return static_cast<std::int64_t>(kOne * (tie < 1 ? tie : 1)) + 1;
  }

  const Csr<Index>& matrix_;
  const float* scale_;
  Blocks& blocks_;
  std::int32_t* step_;
  std::int64_t first_, end_;
  std::int32_t block_;
  std::int64_t taken_;   // members so far
  std::int64_t lowest_;  // no row before it is free
  std::int32_t inner_ = 0;
  std::vector<Candidate> candidates_;
  std::vector<std::int32_t> front_;
  std::size_t reached_ = 0;  // of the front
};

}  // namespace

template <class Index>
Blocks grow_blocks(const Csr<Index>& matrix, int block_rows, int threads) {
  const Scale scale = scale_of(matrix, threads);
  check_places(matrix.rows, 1, 1);
  Blocks blocks;
  blocks.most_rows = block_rows;
  blocks.rows = chunks_of(matrix.rows, matrix.starts[matrix.rows], scale.far);
  blocks.chunks.push_back(0);
  for (std::size_t chunk = 0; chunk + 1 < blocks.rows.size(); ++chunk) {
    for (std::int64_t first = blocks.rows[chunk]; first < blocks.rows[chunk + 1];
         first += block_rows) {
      blocks.starts.push_back(static_cast<std::int32_t>(first));
    }
    blocks.chunks.push_back(static_cast<std::int32_t>(blocks.starts.size()));
  }
  blocks.starts.push_back(static_cast<std::int32_t>(matrix.rows));
  blocks.members.resize(at(matrix.rows));
  blocks.block.resize(at(matrix.rows));
  blocks.inner.resize(at(blocks.count()));
  blocks.outer.resize(at(blocks.count()));
  blocks.step.resize(at(matrix.rows), -1);
  for_parts(blocks.chunk_count(), threads,
            [&](std::int64_t chunk) { Growth(matrix, scale, blocks, chunk).run(); });
  return blocks;
}

template Blocks grow_blocks(const Csr<std::int32_t>&, int, int);
template Blocks grow_blocks(const Csr<std::int64_t>&, int, int);

}  // namespace flowos::solve
