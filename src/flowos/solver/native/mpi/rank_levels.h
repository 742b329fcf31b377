#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/storage.h"
#include "mpi/by_threads.h"
#include "mpi/halo.h"
#include "mpi/level_owners.h"
#include "mpi/level_shares.h"
#include "mpi/links.h"
#include "mpi/partition.h"
#include "mpi/rank_executor.h"
#include "mpi/requests.h"
#include "mpi/share.h"
#include "multigrid/hierarchy.h"
#include "ordering/groups.h"

namespace flowos::solve {

// Values that some rank has each, for all ranks to have.
template <class Value>
class Gathering {
 public:
  // Of each rank the places of what it has.
  Gathering(const OfRanks& places, MPI_Comm comm) : comm_(comm) {
    MPI_Comm_rank(comm, &rank_);
    for (const std::vector<std::int32_t>& of_rank : places) {
      starts_.push_back(static_cast<int>(places_.size()));
      counts_.push_back(static_cast<int>(of_rank.size()));
      places_.insert(places_.end(), of_rank.begin(), of_rank.end());
    }
    values_.resize(places_.size());
  }

  void gather(Value* vector) {
    static_assert(std::is_same_v<Value, float> || std::is_same_v<Value, double>);
    const MPI_Datatype type = std::is_same_v<Value, float> ? MPI_FLOAT : MPI_DOUBLE;
    const auto own = static_cast<std::size_t>(rank_);
    const auto first = static_cast<std::size_t>(starts_[own]);
    const std::size_t past = first + static_cast<std::size_t>(counts_[own]);
    for (std::size_t i = first; i < past; i++) values_[i] = vector[places_[i]];
    MPI_Allgatherv(MPI_IN_PLACE, 0, type, values_.data(), counts_.data(), starts_.data(), type,
                   comm_);
    for (std::size_t i = 0; i < places_.size(); i++) vector[places_[i]] = values_[i];
  }

 private:
  MPI_Comm comm_;
  int rank_ = 0;
  std::vector<std::int32_t> places_;  // rank after rank
  std::vector<int> starts_, counts_;  // of each rank
  std::vector<Value> values_;
};

// The executors of all levels of a hierarchy, and the transfers between levels, by MPI ranks;
// ThreadLevels (multigrid/) does the same with threads. Each rank has its share of the large
// levels, and all of the small ones. Places are those of the whole.
template <class T>
class RankLevels {
 public:
  // share: of the finest level.
  RankLevels(const Hierarchy<T>& hierarchy, const Share& share, const LevelOwners& owners,
             int threads, MPI_Comm comm)
      : share_(share), threads_(threads), comm_(comm), local_(owners.of(0).size(), -1) {
    for (std::size_t group = 0; group < share.group.size(); group++)
      local_[static_cast<std::size_t>(share.group[group])] = static_cast<std::int64_t>(group);
    int rank = 0, ranks = 1;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    std::vector<LevelShare> shares = LevelSharing<T>(hierarchy, owners, rank, ranks).build();
    levels_.reserve(shares.size());
    for (std::size_t l = 0; l < shares.size(); l++)
      add(hierarchy.levels[l], owners.of(l), std::move(shares[l]));
  }

  RankExecutor& of(std::size_t l) { return levels_[l].executor; }

  template <class Work>
  void each_row(Groups groups, const Work& work) const {
    for (std::int64_t group = groups.first; group < groups.past; group++) {
      const std::int64_t here = local_[static_cast<std::size_t>(group)];
      const auto away = static_cast<std::size_t>((group - here) * share_.order.group_places());
      solve::each_row(share_.order, {here, here + 1},
                      [&](std::size_t row, std::size_t place) { work(row, place + away); });
    }
  }

  template <class Work>
  void restrict_each(std::size_t l, T* residual, const Work& work) {
    if (levels_[l].members) levels_[l].members->all(residual);
    by_threads(threads_, levels_[l].added, 1, work);
  }
  template <class Work>
  void interpolate_each(std::size_t l, const Work& work) const {
    by_threads(threads_, levels_[l].spread, 1, work);
  }
  void share_coarse(std::size_t l, T* coarse) {
    if (levels_[l].down) levels_[l].down->gather(coarse);
  }

 private:
  struct One {
    RankExecutor executor;
    // Where aggregates lie anywhere.
    std::vector<std::int32_t> added, spread;
    std::vector<ColourLinks> member_links;
    std::unique_ptr<Halo<T>> members;
    std::unique_ptr<Gathering<T>> down;  // where every rank computes all of the next level
  };

  RankExecutor executor_of(const Level<T>& level, const Owners& owners,
                           const std::vector<std::uint8_t>& read) const {
    const int steps = level.view().steps;
    if (owners.empty())
      return RankExecutor::replicated(level.colour_starts, steps, kLanes<T>, threads_, comm_);
    return {Requests(level.colour_starts, steps, owners, comm_).links(read),
            level.groups(),
            steps,
            kLanes<T>,
            threads_,
            comm_};
  }

  void add(const Level<T>& level, const Owners& owners, LevelShare share) {
    One& one = levels_.emplace_back(One{.executor = executor_of(level, owners, share.read),
                                        .added = std::move(share.added),
                                        .spread = std::move(share.spread),
                                        .member_links = {},
                                        .members = nullptr,
                                        .down = nullptr});
    if (owners.empty()) return;
    if (!level.down.coarse_place.empty()) {
      const std::vector<std::int64_t> together = {0, level.groups()};
      one.member_links =
          Requests(together, level.view().steps, owners, comm_).links(share.added_lines);
      one.members = std::make_unique<Halo<T>>(kLanes<T>, one.member_links, comm_);
    }
    if (!share.coarse_places.empty())
      one.down = std::make_unique<Gathering<T>>(share.coarse_places, comm_);
  }

  const Share& share_;
  int threads_;
  MPI_Comm comm_;
  std::vector<std::int64_t> local_;  // of each group of the finest level its number in the share
  std::vector<One> levels_;
};

}  // namespace flowos::solve
