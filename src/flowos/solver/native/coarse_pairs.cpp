// Aggregates along strong ties, wherever they lie: pairs of rows, then pairs of pairs (Notay, ETNA
// 37, 2010).

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "coarse_aggregates.h"
#include "coarse_line.h"
#include "coarse_members.h"
#include "coarse_rows.h"
#include "matrix.h"
#include "ordering_parts.h"

namespace flowos::solve {
namespace {

constexpr std::int64_t kChunk = 1 << 16;  // aggregates that are paired only with each other
constexpr double kStrong = 0.25;          // of the strongest tie

// Aggregates, and of each the sum of its diagonal.
struct Measured {
  Aggregates aggregates;
  Raw<double> diagonal;
};

// The pairs among the aggregates of a chunk, which are numbered from 0.
class Pairing {
 public:
  // Of each aggregate: the sum of its diagonal; the first of its pair, which is kNone from here on.
  Pairing(std::span<const double> diagonal, std::span<std::int32_t> pair)
      : diagonal_(diagonal), pair_(pair), size_(pair.size()) {
    std::ranges::fill(pair_, kNone);
  }

  static constexpr std::int32_t kNone = -1;

  bool is_paired(std::int64_t one) const { return pair_[at(one)] != kNone; }

  // With the strongest that has none yet, if it is strong; else into the pair of the strongest.
  void join(std::int64_t one, std::span<const CoarseEntry> ties) {
    const Best best = best_of(one, ties);
    if (best.is_strong(best.free)) {
      const std::int32_t other = ties[number_in(best.free)].column;
      add(one, static_cast<std::int32_t>(one));
      add(other, static_cast<std::int32_t>(one));
    } else if (best.is_strong(best.open)) {
      add(one, pair_[at(ties[number_in(best.open)].column)]);
    } else {
      add(one, static_cast<std::int32_t>(one));
    }
  }

 private:
  static constexpr int kMost = 3;

  // Keys of ties: the strongest has the greatest, and of equal ones the first. So the best of some
  // is found without branches, which would be guessed wrong.
  static std::uint64_t key_of(float strength, std::size_t number) {
    return std::uint64_t{std::bit_cast<std::uint32_t>(strength)} << 32 |
           ~static_cast<std::uint32_t>(number);
  }
  static float strength_in(std::uint64_t key) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(key >> 32));
  }
  static std::size_t number_in(std::uint64_t key) { return ~static_cast<std::uint32_t>(key); }

  struct Best {
    std::uint64_t all = 0, free = 0, open = 0;  // free: without a pair; open: in one with room

    bool is_strong(std::uint64_t key) const {
      const float strength = strength_in(key);
      return strength > 0 && strength >= kStrong * kStrong * strength_in(all);
    }
  };

  // Strength is |a_ij|^2 / (a_ii a_jj).
  Best best_of(std::int64_t one, std::span<const CoarseEntry> ties) const {
    Best best;
    const double scale = 1 / diagonal_[at(one)];
    for (std::size_t i = 0; i < ties.size(); ++i) {
      const double value = std::min(ties[i].value, 0.0);
      const std::int32_t pair = pair_[at(ties[i].column)];
      const double strength = (value * scale) * (value / diagonal_[at(ties[i].column)]);
      const std::uint64_t key = key_of(static_cast<float>(strength), i);
      const bool open = (pair != kNone) & (size_[at(std::max(pair, 0))] < kMost);
      best.all = std::max(best.all, key);
      best.free = std::max(best.free, key * static_cast<std::uint64_t>(pair == kNone));
      best.open = std::max(best.open, key * static_cast<std::uint64_t>(open));
    }
    return best;
  }

  void add(std::int64_t one, std::int32_t first) {
    pair_[at(one)] = first;
    ++size_[at(first)];
  }

  std::span<const double> diagonal_;
  std::span<std::int32_t> pair_;
  std::vector<std::uint8_t> size_;  // of each first
};

// Puts the numbers of pairs, which are in the order of their first ones, in place of these: how
// many there are. No pair has one before its first.
std::int32_t number_pairs(std::span<std::int32_t> pair) {
  std::int32_t count = 0;
  for (std::size_t one = 0; one < pair.size(); ++one) {
    pair[one] = at(pair[one]) == one ? count++ : pair[at(pair[one])];
  }
  return count;
}

template <class Index>
Measured rows_of(const Csr<Index>& matrix, int threads) {
  Measured result;
  result.aggregates.count = matrix.rows;
  result.aggregates.of.resize(at(matrix.rows));
  result.diagonal.resize(at(matrix.rows));
  for_runs(matrix.rows, kChunk, threads, [&](std::int64_t first, std::int64_t past) {
    for (std::int64_t row = first; row < past; ++row) {
      result.aggregates.of[at(row)] = static_cast<std::int32_t>(row);
      result.diagonal[at(row)] = entry_of(matrix, row, row);
    }
  });
  return result;
}

template <class Index>
Measured pairs_of(const Csr<Index>& matrix, const Measured& measured, int threads) {
  const Aggregates& aggregates = measured.aggregates;
  const Members members(aggregates, threads);
  const std::int64_t count = aggregates.count;
  Raw<std::int32_t> pair(at(count));
  std::vector<std::int32_t> starts(at((count + kChunk - 1) / kChunk) + 1);  // of chunks, in pairs
  for_runs(count, kChunk, threads, [&](std::int64_t first, std::int64_t past) {
    CoarseRows<Index> rows(matrix, aggregates, members, first, past);
    const std::span its = std::span(pair).subspan(at(first), at(past - first));
    Pairing pairing(std::span(measured.diagonal).subspan(at(first)), its);
    for (std::int64_t one = first; one < past; ++one) {
      if (!pairing.is_paired(one - first)) pairing.join(one - first, rows.row(one).subspan(1));
    }
    starts[at(first / kChunk) + 1] = number_pairs(its);
  });
  std::partial_sum(starts.begin(), starts.end(), starts.begin());
  Measured result;
  result.aggregates.count = starts.back();
  result.diagonal.resize(at(starts.back()));
  for_runs(count, kChunk, threads, [&](std::int64_t first, std::int64_t past) {
    const std::int32_t* const start = starts.data() + first / kChunk;
    std::fill(result.diagonal.begin() + start[0], result.diagonal.begin() + start[1], 0.0);
    for (std::int64_t one = first; one < past; ++one) {
      pair[at(one)] += *start;
      result.diagonal[at(pair[at(one)])] += measured.diagonal[at(one)];
    }
  });
  result.aggregates.of.resize(aggregates.of.size());
  for_runs(matrix.rows, kChunk, threads, [&](std::int64_t first, std::int64_t past) {
    for (std::int64_t row = first; row < past; ++row) {
      result.aggregates.of[at(row)] = pair[at(aggregates.of[at(row)])];
    }
  });
  return result;
}

}  // namespace

template <class Index>
Aggregates aggregate_pairs(const Csr<Index>& matrix, int times, int threads) {
  Measured result = rows_of(matrix, threads);
  for (int i = 0; i < times; ++i) result = pairs_of(matrix, result, threads);
  return std::move(result.aggregates);
}

template Aggregates aggregate_pairs(const Csr<std::int32_t>&, int, int);
template Aggregates aggregate_pairs(const Csr<std::int64_t>&, int, int);

}  // namespace flowos::solve
