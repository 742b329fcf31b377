// Blocks of rows, grown row by row.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/for_each.h"
#include "base/storage.h"
#include "matrix/matrix.h"
#include "ordering/graph.h"
#include "ordering/places.h"

namespace flowos::solve {
namespace {

constexpr std::int64_t kChunkRows = 1 << 17;
constexpr std::int64_t kRunRows = 1 << 14;

// What growth looks at besides the entries: 1 / sqrt of the diagonal, so that what ties rows is
// |a_ij| / sqrt(a_ii a_jj).
struct Scale {
  Raw<float> of_row;
  std::int64_t far = 0;  // entries that tie rows which are numbered far from each other
};

struct RowFacts {
  double diagonal = 0;
  std::int64_t far = 0;
};

template <class Index>
RowFacts facts_of(const Csr<Index>& matrix, std::int64_t row) {
  RowFacts facts;
  for (Index k = matrix.starts[row]; k < matrix.starts[row + 1]; ++k) {
    const std::int64_t distance = matrix.columns[k] - row;
    if (distance == 0) facts.diagonal += matrix.values[k];
    facts.far += std::abs(distance) > kChunkRows / 2 ? 1 : 0;
  }
  return facts;
}

template <class Index>
Scale scale_of(const Csr<Index>& matrix, int threads) {
  Scale scale;
  scale.of_row.resize(at(matrix.rows));
  std::vector<std::int64_t> far(at((matrix.rows + kRunRows - 1) / kRunRows));
  for_runs(matrix.rows, kRunRows, threads, [&](std::int64_t first, std::int64_t end) {
    std::int64_t count = 0;
    for (std::int64_t row = first; row < end; ++row) {
      const RowFacts facts = facts_of(matrix, row);
      count += facts.far;
      scale.of_row[at(row)] =
          facts.diagonal > 0 ? static_cast<float>(1 / std::sqrt(facts.diagonal)) : 0.0F;
    }
    far[at(first / kRunRows)] = count;
  });
  for (const std::int64_t count : far) scale.far += count;
  return scale;
}

// Of each chunk its first block; then all. Only one where rows are numbered far from what they
// touch.
std::vector<std::int32_t> chunks_of(std::int64_t rows, int block_rows, bool near) {
  const std::int64_t blocks = (rows + block_rows - 1) / block_rows;
  const std::int64_t length = near ? std::max<std::int64_t>(1, kChunkRows / block_rows) : blocks;
  std::vector<std::int32_t> first;
  for (std::int64_t block = 0; block < blocks; block += length) {
    first.push_back(static_cast<std::int32_t>(block));
  }
  first.push_back(static_cast<std::int32_t>(blocks));
  return first;
}

// Grows the blocks of a chunk: a block takes the row that is tied to it most, of those the one that
// it has touched longest, until it is full. The next one begins where an earlier one left off.
template <class Index>
class Growth {
 public:
  // member: of each row.
  Growth(const Csr<Index>& matrix, const Scale& scale, Blocks& blocks, Raw<std::int32_t>& member,
         std::int64_t chunk)
      : matrix_(matrix),
        scale_(scale.of_row.data()),
        blocks_(blocks),
        member_(member.data()),
        block_(blocks.chunks[at(chunk)]),
        first_(blocks.first_of(block_)),
        end_(blocks.end_of(blocks.chunks[at(chunk) + 1] - 1)),
        taken_(first_),
        lowest_(first_),
        link_(matrix.starts[first_]) {}

  static constexpr std::int32_t kFree = -1;

  void run() {
    std::fill(member_ + first_, member_ + end_, kFree);
    for (; taken_ < end_; ++block_) grow(blocks_.end_of(block_));
  }

 private:
  // A candidate is a row that the block touches; its number is kFree - 1 - member_[row]. The
  // greatest key is that of the row with the strongest ties, and of equal ones the first: what is
  // below kNumbers counts down. More candidates are not looked at.
  static constexpr std::uint64_t kNumbers = 1 << 16;

  void grow(std::int32_t full) {
    while (taken_ < full) {
      std::uint64_t best = 0;
      for (const std::uint64_t key : keys_) best = std::max(best, key);
      if (best > 0) {
        const std::uint64_t number = kNumbers - 1 - best % kNumbers;
        keys_[number] = 0;
        take(candidates_[number]);
      } else {
        take(next_seed());
      }
    }
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      if (keys_[i] == 0) continue;
      member_[candidates_[i]] = kFree;
      front_.push_back(candidates_[i]);
    }
    keys_.clear();
    candidates_.clear();
  }

  // A row that a finished block has touched, the earliest; else the first that is left.
  std::int32_t next_seed() {
    for (; reached_ < front_.size(); ++reached_) {
      if (member_[front_[reached_]] == kFree) return front_[reached_];
    }
    while (member_[lowest_] != kFree) ++lowest_;
    return lowest_;
  }

  void take(std::int32_t row) {
    member_[row] = taken_;
    blocks_.rows[at(taken_)] = row;
    for (Index k = matrix_.starts[row]; k < matrix_.starts[row + 1]; ++k) {
      const auto column = static_cast<std::int32_t>(matrix_.columns[k]);
      blocks_.links[at(link_++)] = column;
      if (column < first_ || column >= end_) {
        blocks_.outer[at(block_)] = 1;
      } else if (member_[column] < 0) {
        touch(column, tie_of(matrix_.values[k], row, column));
      }
    }
    blocks_.starts[at(++taken_)] = link_;
  }

  void touch(std::int32_t row, std::uint64_t tie) {
    if (member_[row] != kFree) {
      keys_[at(kFree - 1 - member_[row])] += tie * kNumbers;
      return;
    }
    if (keys_.size() == kNumbers) return;
    member_[row] = kFree - 1 - static_cast<std::int32_t>(keys_.size());
    keys_.push_back(tie * kNumbers + kNumbers - 1 - keys_.size());
    candidates_.push_back(row);
    const Index start = matrix_.starts[row];
    __builtin_prefetch(matrix_.columns + start);
    __builtin_prefetch(matrix_.values + start);
  }

  // In whole numbers, so that the sum does not depend on the order. At most 1 where the matrix is
  // positive definite; what it is else does not matter.
  std::uint64_t tie_of(double value, std::int32_t row, std::int32_t column) const {
    constexpr double kOne = 1 << 20;
    const double tie = std::abs(value) * scale_[row] * scale_[column];
    return static_cast<std::uint64_t>(kOne * (tie < 1 ? tie : 1)) + 1;
  }

  const Csr<Index>& matrix_;
  const float* scale_;
  Blocks& blocks_;
  std::int32_t* member_;
  std::int32_t block_;
  std::int32_t first_, end_;  // rows, and members
  std::int32_t taken_;        // members so far
  std::int32_t lowest_;       // no row before it is free
  std::int64_t link_;
  std::vector<std::uint64_t> keys_;  // of the candidates; 0: taken
  std::vector<std::int32_t> candidates_;
  std::vector<std::int32_t> front_;
  std::size_t reached_ = 0;  // of the front
};

}  // namespace

template <class Index>
Blocks grow_blocks(const Csr<Index>& matrix, int block_rows, int threads) {
  constexpr std::int64_t kFew = 10;
  check_places(matrix.rows, 1, 1);
  const std::int64_t entries = matrix.starts[matrix.rows];
  const Scale scale = scale_of(matrix, threads);
  Blocks blocks;
  blocks.max_rows = block_rows;
  blocks.chunks = chunks_of(matrix.rows, block_rows, scale.far <= entries / kFew);
  blocks.rows.resize(at(matrix.rows));
  blocks.starts.resize(at(matrix.rows + 1));
  blocks.starts[0] = 0;
  blocks.links.resize(at(entries));
  blocks.outer.resize(at(blocks.count()));
  Raw<std::int32_t> member(at(matrix.rows));
  for_parts(blocks.chunk_count(), threads,
            [&](std::int64_t chunk) { Growth(matrix, scale, blocks, member, chunk).run(); });
  for_runs(entries, kRunRows, threads, [&](std::int64_t first, std::int64_t end) {
    for (std::int64_t k = first; k < end; ++k) {
      blocks.links[at(k)] = member[at(blocks.links[at(k)])];
    }
  });
  return blocks;
}

template Blocks grow_blocks(const Csr<std::int32_t>&, int, int);
template Blocks grow_blocks(const Csr<std::int64_t>&, int, int);

}  // namespace flowos::solve
