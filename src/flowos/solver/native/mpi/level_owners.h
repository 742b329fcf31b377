#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "mpi/partition.h"
#include "multigrid/hierarchy.h"
#include "ordering/ordering.h"
#include "simd/lanes_matrix.h"

namespace flowos::solve {

// The ranks that compute the groups of each level, found while the hierarchy is built. The same on
// all ranks.
class LevelOwners {
 public:
  // finest: of the finest level's groups.
  LevelOwners(int rank, int ranks, std::function<Owners(const Ordering&)> finest)
      : rank_(rank), ranks_(ranks), finest_(std::move(finest)) {}

  // Of a level: none where every rank computes all of it, as that takes less time than to hand on
  // what others need.
  const Owners& of(std::size_t l) const { return owners_[l]; }

  // The rank of the first row of an aggregate.
  static std::int32_t of_aggregate(const Owners& fine, std::int64_t group_places,
                                   const Transfer& down, std::size_t aggregate) {
    const std::int32_t place = down.places[static_cast<std::size_t>(down.starts[aggregate])];
    return fine[static_cast<std::size_t>(place / group_places)];
  }

  // Which groups of the next level are held here (see Holding).
  Held hold(const Ordering& ordering, const Transfer* from) {
    if (from == nullptr) {
      owners_.push_back(finest_(ordering));
    } else if (owners_.back().empty() || !is_worth_sharing(ordering)) {
      owners_.emplace_back();
    } else if (from->coarse_steps > 0) {
      owners_.push_back(Owners(owners_.back()));
    } else {
      owners_.push_back(majority_owners(ordering, *from));
    }
    group_places_ = ordering.group_places();
    const Owners& owners = owners_.back();
    Held held(owners.size());
    for (std::size_t group = 0; group < held.size(); group++) held[group] = owners[group] == rank_;
    return held;
  }

 private:
  // Of a colour, on each rank: to compute as many takes as long as to hand some on.
  static constexpr std::int64_t kMinLines = 256;

  bool is_worth_sharing(const Ordering& ordering) const {
    return ordering.groups() * ordering.block_rows >= kMinLines * ordering.colours() * ranks_;
  }

  // For each group the rank that has most of its aggregates.
  Owners majority_owners(const Ordering& coarse, const Transfer& down) const {
    const auto ranks = static_cast<std::size_t>(ranks_);
    std::vector<std::int32_t> counts(static_cast<std::size_t>(coarse.groups()) * ranks);
    for (std::size_t i = 0; i < down.coarse_place.size(); i++) {
      const auto group = static_cast<std::size_t>(down.coarse_place[i] / coarse.group_places());
      const std::int32_t owner = of_aggregate(owners_.back(), group_places_, down, i);
      counts[group * ranks + static_cast<std::size_t>(owner)]++;
    }
    Owners owners(static_cast<std::size_t>(coarse.groups()));
    for (std::size_t group = 0; group < owners.size(); group++) {
      const auto its = counts.begin() + static_cast<std::ptrdiff_t>(group * ranks);
      owners[group] = static_cast<std::int32_t>(std::max_element(its, its + ranks_) - its);
    }
    return owners;
  }

  int rank_, ranks_;
  std::function<Owners(const Ordering&)> finest_;
  std::vector<Owners> owners_;     // of each level
  std::int64_t group_places_ = 1;  // of the last
};

}  // namespace flowos::solve
