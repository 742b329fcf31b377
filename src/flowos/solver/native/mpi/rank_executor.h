#pragma once

#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "base/exact_sum.h"
#include "mpi/by_threads.h"
#include "mpi/halo.h"
#include "mpi/links.h"
#include "mpi/rank_sums.h"
#include "ordering/groups.h"
#include "ordering/ordering.h"
#include "threads/executor.h"

namespace flowos::solve {

// Executes coloured sweeps with MPI ranks (see Executor); ThreadExecutor (threads/) does the same
// with threads. Each rank computes its own groups with OpenMP threads. Groups that other ranks wait
// for are computed first, and sent while the rest is computed.
class RankExecutor {
 public:
  // colours: the groups of this rank, out of so many, and what is exchanged after each colour.
  // Groups have `steps` steps of `lanes` values each.
  RankExecutor(std::vector<ColourLinks> colours, std::int64_t groups, int steps, int lanes,
               int threads, MPI_Comm comm)
      : colours_(std::move(colours)),
        others_(others_of(colours_, groups)),
        steps_(steps),
        lanes_(lanes),
        threads_(threads),
        comm_(comm) {}

  // For groups that every rank computes: they count once.
  static RankExecutor replicated(const std::vector<std::int64_t>& colour_starts, int steps,
                                 int lanes, int threads, MPI_Comm comm) {
    std::vector<ColourLinks> colours(colour_starts.size() - 1);
    for (std::size_t colour = 0; colour < colours.size(); colour++) {
      std::vector<std::int32_t>& all = colours[colour].rest;
      all.resize(static_cast<std::size_t>(colour_starts[colour + 1] - colour_starts[colour]));
      std::iota(all.begin(), all.end(), static_cast<std::int32_t>(colour_starts[colour]));
    }
    RankExecutor executor(std::move(colours), colour_starts.back(), steps, lanes, threads, comm);
    int rank = 0;
    MPI_Comm_rank(comm, &rank);
    executor.is_counted_ = rank == 0;
    return executor;
  }

  int colours() const { return static_cast<int>(colours_.size()); }
  int threads() const { return threads_; }
  bool is_distributed() const { return true; }
  std::int64_t lines(int first, int past) const {
    std::size_t groups = 0;
    for (int colour = first; colour < past; colour++)
      groups += links_of(colour).first.size() + links_of(colour).rest.size();
    return static_cast<std::int64_t>(groups) * steps_;
  }

  template <class Work>
  void each(const Work& work) const {
    each(0, colours(), work);
  }
  template <class Work>
  void each(int first, int past, const Work& work) const {
    for (int colour = first; colour < past; colour++) {
      by_threads(threads_, links_of(colour).first, steps_, work);
      by_threads(threads_, links_of(colour).rest, steps_, work);
    }
  }
  template <class Work>
  void each_held(const Work& work) const {
    each(work);
    for (const std::int32_t group : others_) work(Groups{group, group + 1});
  }

  template <class Work>
  void each_row(const Ordering& ordering, const Work& work) const {
    each([&](Groups groups) { solve::each_row(ordering, groups, work); });
  }
  template <class Value, class Work>
  void turn(int colour, Value* vector, const Work& work) {
    const ColourLinks& groups = links_of(colour);
    by_threads(threads_, groups.first, steps_, work);
    if (groups.links.empty()) return by_threads(threads_, groups.rest, steps_, work);
    Halo<Value>& halo = halo_of(vector);
    halo.begin(colour, vector);
    by_threads(threads_, groups.rest, steps_, work);
    halo.end(colour, vector);
  }
  template <class Value>
  void fetch(Value* vector) {
    halo_of(vector).all(vector);
  }

  // Adds what work(groups, sums) adds for all groups of this rank, where a group takes `steps`.
  template <std::size_t count, class Work>
  void add_over(int steps, const Work& work, ExactSums<count>& sums) const {
    if (!is_counted_) return;
    for (const ColourLinks& colour : colours_)
      for (const auto* groups : {&colour.first, &colour.rest})
        by_threads_in_parts(threads_, *groups, steps,
                            [&](const std::int32_t* i, const std::int32_t* past) {
                              ExactSums<count> partial;
                              for (; i < past; i++) work(Groups{*i, *i + 1}, partial);
#pragma omp critical
                              for (std::size_t k = 0; k < count; k++) sums[k].add(partial[k]);
                            });
  }
  template <std::size_t count>
  void add(const std::array<const double*, count>& of_groups, ExactSums<count>& sums) const {
    add_over(
        1, [&](Groups groups, ExactSums<count>& to) { add_groups(groups, of_groups, to); }, sums);
  }
  template <std::size_t count>
  std::array<double, count> total(const ExactSums<count>& sums) const {
    return over_ranks(sums, comm_);
  }
  double greatest(double value) const {
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_MAX, comm_);
    return value;
  }

 private:
  static std::vector<std::int32_t> others_of(const std::vector<ColourLinks>& colours,
                                             std::int64_t groups) {
    std::vector<bool> own(static_cast<std::size_t>(groups));
    for (const ColourLinks& colour : colours)
      for (const auto* some : {&colour.first, &colour.rest})
        for (const std::int32_t group : *some) own[static_cast<std::size_t>(group)] = true;
    std::vector<std::int32_t> others;
    for (std::size_t group = 0; group < own.size(); group++)
      if (!own[group]) others.push_back(static_cast<std::int32_t>(group));
    return others;
  }

  const ColourLinks& links_of(int colour) const {
    return colours_[static_cast<std::size_t>(colour)];
  }

  template <class Value>
  Halo<Value>& halo_of(const Value*) {
    auto& halo = std::get<std::unique_ptr<Halo<Value>>>(halos_);
    if (!halo) halo = std::make_unique<Halo<Value>>(lanes_, colours_, comm_);
    return *halo;
  }

  std::vector<ColourLinks> colours_;
  std::vector<std::int32_t> others_;  // groups of other ranks
  int steps_, lanes_, threads_;
  MPI_Comm comm_;
  bool is_counted_ = true;
  std::tuple<std::unique_ptr<Halo<float>>, std::unique_ptr<Halo<double>>> halos_;  // once needed
};

}  // namespace flowos::solve
