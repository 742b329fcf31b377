// Aggregates along strong ties, wherever they lie.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "base/for_each.h"
#include "base/storage.h"
#include "matrix/matrix.h"
#include "multigrid/aggregates.h"
#include "ordering/traversal.h"

namespace flowos::solve {
namespace {

// How strongly rows are tied: -a_ij / sqrt(a_ii a_jj).
template <class Index>
class Ties {
 public:
  Ties(const Csr<Index>& matrix, int threads)
      : matrix_(matrix), scale_(at(matrix.rows)), strongest_(at(matrix.rows)) {
    each_row(threads, [&](std::int64_t row) {
      scale_[at(row)] = 1 / std::sqrt(entry_of(matrix, row, row));
    });
    each_row(threads, [&](std::int64_t row) {
      double strongest = 0;
      for (Index k = matrix.starts[row]; k < matrix.starts[row + 1]; ++k) {
        strongest = std::max(strongest, of(row, k));
      }
      strongest_[at(row)] = strongest;
    });
  }

  // Of an entry; at most 0 on the diagonal, as that is positive.
  double of(std::int64_t row, Index k) const {
    return -matrix_.values[k] * scale_[at(row)] * scale_[at(matrix_.columns[k])];
  }
  double strongest(std::int64_t row) const { return strongest_[at(row)]; }

 private:
  template <class Work>
  void each_row(int threads, const Work& work) {
    constexpr std::int64_t kRun = 1 << 14;
    for_runs(matrix_.rows, kRun, threads, [&](std::int64_t first, std::int64_t past) {
      for (std::int64_t row = first; row < past; ++row) work(row);
    });
  }

  const Csr<Index>& matrix_;
  Raw<double> scale_;
  Raw<double> strongest_;
};

// Gathers the rows of a chunk. An aggregate grows from a row by those that are tied most to what it
// has, so that in a mesh it becomes a square and no line. A row that has stronger ties elsewhere is
// left to them; one that is left alone goes where its strongest tie leads.
template <class Index>
class Gathering {
 public:
  // of: of all rows; the aggregates of a chunk are numbered from 0.
  Gathering(const Csr<Index>& matrix, const Ties<Index>& ties, const Walk::Chunk& chunk,
            std::int32_t* of)
      : matrix_(matrix),
        ties_(ties),
        chunk_(chunk),
        of_(of),
        candidates_(1),
        where_(chunk.rows.size()) {
    std::fill(of_ + chunk.first, of_ + chunk.past, kNone);
  }

  // How many aggregates there are.
  std::int32_t run() {
    for (const std::int32_t row : chunk_.rows) {
      if (of_[row] == kNone) grow(row);
    }
    return static_cast<std::int32_t>(sizes_.size());
  }

 private:
  static constexpr std::int32_t kNone = -1;
  static constexpr int kFull = 4;           // rows of an aggregate that grows
  static constexpr int kMax = 6;            // with those that were left alone
  static constexpr double kOfFirst = 0.25;  // of the strongest tie of the row that it grows from
  static constexpr double kOfOwn = 0.5;     // of the strongest tie of the row that comes to it

  struct Candidate {
    std::int64_t row;
    double tie;  // to the rows of the aggregate
  };

  void grow(std::int64_t first) {
    begin_ += count_;
    count_ = 0;
    candidates_[0] = {};
    sizes_.push_back(0);
    const double least = kOfFirst * ties_.strongest(first);
    std::int64_t row = first;
    while (row != kNone) {
      of_[row] = static_cast<std::int32_t>(sizes_.size()) - 1;
      if (++sizes_.back() == kFull) return;
      touch_around(row);
      row = take_best(least);
    }
    if (sizes_.back() == 1) lean(first, least);
  }

  // New or taken is decided without a branch, which would be mispredicted: the candidate
  // after the last has no tie.
  void touch_around(std::int64_t row) {
    const Index start = matrix_.starts[row], past = matrix_.starts[row + 1];
    const std::size_t most = at(count_) + static_cast<std::size_t>(past - start) + 1;
    if (most > candidates_.size()) candidates_.resize(2 * most);
    for (Index k = start; k < past; ++k) {
      const std::int64_t column = matrix_.columns[k];
      if (!chunk_.holds(column)) continue;
      prefetch_row(matrix_, column);
      const bool is_free = of_[column] == kNone;
      std::int64_t& where = where_[at(column - chunk_.first)];
      const bool is_known = is_free & (where >= begin_), is_new = is_free & (where < begin_);
      Candidate& candidate = candidates_[at(is_known ? where - begin_ : count_)];
      where = is_new ? begin_ + count_ : where;
      candidate.row = column;
      candidate.tie += is_free ? ties_.of(row, k) : 0;
      count_ += is_new ? 1 : 0;
      candidates_[at(count_)].tie = is_new ? 0 : candidates_[at(count_)].tie;
    }
  }

  // kNone: there is none whose tie is strong enough, to either side. The strongest has the greatest
  // key, and of equal ones the first.
  std::int64_t take_best(double least) {
    std::uint64_t best = 0;
    for (std::int64_t i = 0; i < count_; ++i) {
      const Candidate& one = candidates_[at(i)];
      const double needed = std::max(least, kOfOwn * ties_.strongest(one.row));
      const auto tie = static_cast<float>(one.tie >= needed ? one.tie : 0);
      const std::uint64_t key =
          std::uint64_t{std::bit_cast<std::uint32_t>(tie)} << 32 | ~static_cast<std::uint32_t>(i);
      best = std::max(best, key);
    }
    if (best >> 32 == 0) return kNone;
    Candidate& taken = candidates_[~static_cast<std::uint32_t>(best)];
    taken.tie = 0;
    return taken.row;
  }

  // To where its strongest tie leads among aggregates that have room.
  void lean(std::int64_t row, double least) {
    std::int32_t to = kNone;
    double most = 0;
    for (Index k = matrix_.starts[row]; k < matrix_.starts[row + 1]; ++k) {
      const std::int64_t column = matrix_.columns[k];
      if (column == row || !chunk_.holds(column) || of_[column] == kNone) continue;
      const double tie = ties_.of(row, k);
      if (tie <= most || tie < least || sizes_[at(of_[column])] == kMax) continue;
      most = tie;
      to = of_[column];
    }
    if (to == kNone) return;
    sizes_.pop_back();
    ++sizes_[at(to)];
    of_[row] = to;
  }

  const Csr<Index>& matrix_;
  const Ties<Index>& ties_;
  const Walk::Chunk& chunk_;
  std::int32_t* of_;
  std::vector<std::uint8_t> sizes_;  // of the aggregates
  std::vector<Candidate> candidates_;
  std::int64_t count_ = 0;           // of the candidates
  std::int64_t begin_ = 1;           // what the first candidate has in where_
  std::vector<std::int64_t> where_;  // of each row of the chunk; below begin_: it is no candidate
};

}  // namespace

template <class Index>
Aggregates grow_aggregates(const Csr<Index>& matrix, const Walk& walk, int threads) {
  const Ties<Index> ties(matrix, threads);
  Aggregates result;
  result.of.resize(at(matrix.rows));
  std::vector<std::int32_t> starts(at(walk.chunks()) + 1);  // of chunks
  walk.each_chunk(threads, [&](const Walk::Chunk& chunk) {
    starts[at(chunk.number) + 1] = Gathering(matrix, ties, chunk, result.of.data()).run();
  });
  std::partial_sum(starts.begin(), starts.end(), starts.begin());
  walk.each_chunk(threads, [&](const Walk::Chunk& chunk) {
    for (const std::int32_t row : chunk.rows) result.of[at(row)] += starts[at(chunk.number)];
  });
  result.count = starts.back();
  return result;
}

template Aggregates grow_aggregates(const Csr<std::int32_t>&, const Walk&, int);
template Aggregates grow_aggregates(const Csr<std::int64_t>&, const Walk&, int);

}  // namespace flowos::solve
