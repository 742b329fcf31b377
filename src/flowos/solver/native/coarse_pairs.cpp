// Aggregates along strong ties, wherever they lie: pairs of rows, then pairs of pairs (Notay, ETNA
// 37, 2010).

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "coarse_aggregates.h"
#include "coarse_members.h"
#include "matrix.h"
#include "ordering_parts.h"

namespace flowos::solve {
namespace {

constexpr std::int64_t kChunk = 1 << 16;  // aggregates that are paired only with each other
constexpr double kStrong = 0.25;          // of the strongest tie

struct Tie {
  std::int32_t to;
  double sum;  // of |entries|
};

// The ties of aggregates to others. One for each thread.
template <class Index>
class Ties {
 public:
  Ties(const Csr<Index>& matrix, const Aggregates& aggregates, const Members& members,
       std::vector<std::int32_t>& where)
      : matrix_(matrix), of_(aggregates.of), members_(members), where_(where) {}

  const std::vector<Tie>& of(std::int64_t aggregate) {
    ties_.clear();
    for (const std::int64_t row : members_.of(aggregate)) {
      for (Index k = matrix_.starts[row]; k < matrix_.starts[row + 1]; ++k) {
        const std::int32_t to = of_[at(matrix_.columns[k])];
        if (to == aggregate || matrix_.values[k] >= 0) continue;
        std::int32_t& known = where_[at(to)];
        if (known < 0) {
          known = static_cast<std::int32_t>(ties_.size());
          ties_.push_back({to, 0});
        }
        ties_[at(known)].sum -= matrix_.values[k];
      }
    }
    for (const Tie& tie : ties_) where_[at(tie.to)] = -1;
    return ties_;
  }

 private:
  const Csr<Index>& matrix_;
  const std::vector<std::int32_t>& of_;
  const Members& members_;
  std::vector<std::int32_t>& where_;  // of each aggregate its tie, while they are put together
  std::vector<Tie> ties_;
};

// The pairs among the aggregates of a chunk.
class Pairing {
 public:
  Pairing(std::int64_t first, std::int64_t past, const std::vector<double>& total,
          std::vector<std::int32_t>& pair, std::vector<std::uint8_t>& size)
      : first_(first), past_(past), total_(total), pair_(pair), size_(size) {}

  // With the strongest that has none yet, if it is strong; else into the pair of the strongest.
  void join(std::int64_t one, const std::vector<Tie>& ties) {
    double strongest = 0;
    for (const Tie& tie : ties) strongest = std::max(strongest, strength(one, tie));
    const std::int64_t free =
        best(one, ties, strongest, [&](std::int64_t to) { return pair_[at(to)] < 0; });
    const std::int64_t taken = free >= 0 ? -1 : best(one, ties, strongest, [&](std::int64_t to) {
      return pair_[at(to)] >= 0 && size_[at(pair_[at(to)])] < kMost;
    });
    const std::int64_t first = taken >= 0 ? pair_[at(taken)] : one;
    pair_[at(one)] = static_cast<std::int32_t>(first);
    ++size_[at(first)];
    if (free >= 0) {
      pair_[at(free)] = static_cast<std::int32_t>(first);
      ++size_[at(first)];
    }
  }

 private:
  static constexpr int kMost = 3;

  double strength(std::int64_t one, const Tie& tie) const {
    return tie.sum * tie.sum / (total_[at(one)] * total_[at(tie.to)]);
  }

  // The most strongly tied one of the chunk that will do; -1: none is tied strongly.
  template <class WillDo>
  std::int64_t best(std::int64_t one, const std::vector<Tie>& ties, double strongest,
                    const WillDo& will_do) const {
    std::int64_t found = -1;
    double most = 0;
    for (const Tie& tie : ties) {
      if (tie.to < first_ || tie.to >= past_ || !will_do(tie.to)) continue;
      const double its = strength(one, tie);
      if (its < kStrong * kStrong * strongest || its <= most) continue;
      found = tie.to;
      most = its;
    }
    return found;
  }

  std::int64_t first_, past_;
  const std::vector<double>& total_;  // of each aggregate's ties
  std::vector<std::int32_t>& pair_;   // of each aggregate the first of its pair; -1: none yet
  std::vector<std::uint8_t>& size_;   // of each first
};

template <class Index>
Aggregates pairs_of(const Csr<Index>& matrix, const Aggregates& aggregates, int threads) {
  const Members members(aggregates, threads);
  const std::int64_t count = aggregates.count;
  std::vector<double> total(at(count));
  std::vector<std::int32_t> pair(at(count), -1);
  std::vector<std::uint8_t> size(at(count));
  const auto with_ties = [&](const auto& work) {
    for_runs(count, kChunk, threads, [&](std::int64_t first, std::int64_t past) {
      static thread_local std::vector<std::int32_t> where;
      where.resize(std::max(where.size(), at(count)), -1);
      Ties<Index> ties(matrix, aggregates, members, where);
      work(first, past, ties);
    });
  };
  with_ties([&](std::int64_t first, std::int64_t past, Ties<Index>& ties) {
    for (std::int64_t one = first; one < past; ++one) {
      for (const Tie& tie : ties.of(one)) total[at(one)] += tie.sum;
    }
  });
  with_ties([&](std::int64_t first, std::int64_t past, Ties<Index>& ties) {
    Pairing pairing(first, past, total, pair, size);
    for (std::int64_t one = first; one < past; ++one) {
      if (pair[at(one)] < 0) pairing.join(one, ties.of(one));
    }
  });
  Aggregates result;
  std::vector<std::int32_t> number(at(count));
  for (std::size_t one = 0; one < number.size(); ++one) {
    if (pair[one] == static_cast<std::int32_t>(one)) {
      number[one] = static_cast<std::int32_t>(result.count++);
    }
  }
  result.of.resize(aggregates.of.size());
  for_runs(matrix.rows, kChunk, threads, [&](std::int64_t first, std::int64_t past) {
    for (std::int64_t row = first; row < past; ++row) {
      result.of[at(row)] = number[at(pair[at(aggregates.of[at(row)])])];
    }
  });
  return result;
}

}  // namespace

template <class Index>
Aggregates aggregate_pairs(const Csr<Index>& matrix, int times, int threads) {
  Aggregates result;
  result.count = matrix.rows;
  result.of.resize(at(matrix.rows));
  std::iota(result.of.begin(), result.of.end(), 0);
  for (int i = 0; i < times; ++i) result = pairs_of(matrix, result, threads);
  return result;
}

template Aggregates aggregate_pairs(const Csr<std::int32_t>&, int, int);
template Aggregates aggregate_pairs(const Csr<std::int64_t>&, int, int);

}  // namespace flowos::solve
