#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/exact_sum.h"
#include "base/storage.h"
#include "mpi/halo.h"
#include "mpi/level_owners.h"
#include "mpi/level_shares.h"
#include "mpi/links.h"
#include "mpi/partition.h"
#include "mpi/rank_sums.h"
#include "mpi/requests.h"
#include "mpi/share.h"
#include "mpi/threads.h"
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

// What LevelExecutor of multigrid/level_executor.h is where each rank has its share of the large
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
    int ranks = 1;
    MPI_Comm_rank(comm, &rank_);
    MPI_Comm_size(comm, &ranks);
    std::vector<LevelShare> shares = LevelSharing<T>(hierarchy, owners, rank_, ranks).made();
    parts_.reserve(shares.size());
    for (std::size_t l = 0; l < shares.size(); l++)
      add(hierarchy.levels[l], owners.of(l), std::move(shares[l]));
  }

  // Or else every rank computes all of the level.
  bool is_shared(std::size_t l) const { return parts_[l].halo != nullptr; }

  template <class Work>
  void each(std::size_t l, std::size_t first, std::size_t past, const Work& work) const {
    for (std::size_t colour = first; colour < past; colour++) {
      const ColourLinks& groups = parts_[l].colours[colour];
      by_threads(groups.first, parts_[l].steps, work);
      by_threads(groups.rest, parts_[l].steps, work);
    }
  }

  // What other ranks wait for is computed first and is under way while the rest is computed.
  template <class Work>
  void turn(std::size_t l, std::size_t colour, T* vector, const Work& work) {
    Part& part = parts_[l];
    const ColourLinks& groups = part.colours[colour];
    by_threads(groups.first, part.steps, work);
    if (part.halo) part.halo->begin(static_cast<int>(colour), vector);
    by_threads(groups.rest, part.steps, work);
    if (part.halo) part.halo->end(static_cast<int>(colour), vector);
  }

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
  void add_up(std::size_t l, T* between, const Work& work) {
    if (parts_[l].members) parts_[l].members->all(between);
    by_threads(parts_[l].added, 1, work);
  }
  template <class Work>
  void spread_out(std::size_t l, const Work& work) const {
    by_threads(parts_[l].spread, 1, work);
  }
  void hand_down(std::size_t l, T* coarse) {
    if (parts_[l].down) parts_[l].down->gather(coarse);
  }

  // What all ranks compute counts once.
  void add(std::size_t l, const std::vector<double>& of_groups, ExactSum& sum) const {
    if (!is_shared(l) && rank_ > 0) return;
    for (const ColourLinks& colour : parts_[l].colours)
      for (const auto* groups : {&colour.first, &colour.rest})
        for (const std::int32_t group : *groups)
          sum.add(of_groups[static_cast<std::size_t>(group)]);
  }
  double total(const ExactSum& sum) const { return over_ranks<1>({sum}, comm_)[0]; }

 private:
  struct Part {
    int steps = 1;
    std::vector<ColourLinks> colours;
    std::unique_ptr<Halo<T>> halo;  // none where every rank computes all groups
    // Where aggregates lie anywhere.
    std::vector<std::int32_t> added, spread;
    std::vector<ColourLinks> member_links;
    std::unique_ptr<Halo<T>> members;
    std::unique_ptr<Gathering<T>> down;  // where every rank computes all of the next level
  };

  void add(const Level<T>& level, const Owners& owners, LevelShare share) {
    Part& part = parts_.emplace_back();
    part.steps = level.view().steps;
    part.added = std::move(share.added);
    part.spread = std::move(share.spread);
    if (owners.empty()) {
      part.colours.resize(level.colour_starts.size() - 1);
      for (std::size_t colour = 0; colour < part.colours.size(); colour++)
        for (auto group = level.colour_starts[colour]; group < level.colour_starts[colour + 1];
             group++)
          part.colours[colour].rest.push_back(static_cast<std::int32_t>(group));
      return;
    }
    part.colours = Requests(level.colour_starts, part.steps, owners, comm_).links(share.read);
    part.halo = std::make_unique<Halo<T>>(kLanes<T>, part.colours, comm_);
    if (!level.down.coarse_place.empty()) {
      const std::vector<std::int64_t> together = {0, level.groups()};
      part.member_links = Requests(together, part.steps, owners, comm_).links(share.added_lines);
      part.members = std::make_unique<Halo<T>>(kLanes<T>, part.member_links, comm_);
    }
    if (!share.made.empty()) part.down = std::make_unique<Gathering<T>>(share.made, comm_);
  }

  // work(item) for a list of groups or aggregates, by as many threads as are worth waking.
  template <class Work>
  void by_threads(const std::vector<std::int32_t>& items, int steps_each, const Work& work) const {
    constexpr std::size_t kLeastEach = 512;
    const std::size_t worth = items.size() * static_cast<std::size_t>(steps_each) / kLeastEach;
    const auto some = [&](std::size_t part, std::size_t parts) {
      const std::size_t past = items.size() * (part + 1) / parts;
      for (std::size_t i = items.size() * part / parts; i < past; i++)
        work(Groups{items[i], items[i] + 1});
    };
    if (threads_ == 1 || worth < 2) return some(0, 1);
#pragma omp parallel num_threads(threads_)
    some(static_cast<std::size_t>(thread_here()), static_cast<std::size_t>(threads_here()));
  }

  const Share& share_;
  int threads_, rank_ = 0;
  MPI_Comm comm_;
  std::vector<std::int64_t> local_;  // of each group of the finest level its number in the share
  std::vector<Part> parts_;          // of each level
};

}  // namespace flowos::solve
