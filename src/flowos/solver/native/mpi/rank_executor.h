#pragma once

#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/exact_sum.h"
#include "mpi/halo.h"
#include "mpi/links.h"
#include "mpi/rank_sums.h"
#include "mpi/share.h"
#include "mpi/threads.h"
#include "ordering/groups.h"
#include "ordering/ordering.h"

namespace flowos::solve {

// What ThreadExecutor of threads/thread_executor.h is where each rank has its share: threads of a
// rank go through its own groups, colour by colour. What other ranks wait for is computed first and
// is under way while the rest is computed.
class RankExecutor {
 public:
  RankExecutor(const Share& share, int threads, MPI_Comm comm)
      : share_(share),
        colours_(links_of(share)),
        floats_(share.order.lanes, colours_, comm),
        doubles_(share.order.lanes, colours_, comm),
        threads_(threads),
        comm_(comm) {}

  bool has_others() const { return true; }
  const Ordering& ordering() const { return share_.order; }
  int threads() const { return threads_; }
  std::int64_t lines() const { return lines_of(share_.order.groups()); }
  std::int64_t first_lines() const { return lines_of(share_.order.colour_starts[1]); }

  template <class Work>
  void each(const Work& work) const {
#pragma omp parallel num_threads(threads_)
    part_of_all(work);
  }

  template <class Work>
  void each_row(const Work& work) const {
    each([&](Groups groups) { flowos::solve::each_row(share_.order, groups, work); });
  }

  template <class Work>
  void each_held(const Work& work) const {
    each(work);
    for (std::int64_t group = 0; group < share_.order.groups(); group++)
      if (!share_.is_own(group)) work(Groups{group, group + 1});
  }

  template <class Value, class Work>
  void forward(Value* vector, const Work& work) {
#pragma omp parallel num_threads(threads_)
    for (int colour = 0; colour < colours(); colour++)
      turn(colour, colour + 1 < colours(), vector, work);
  }

  template <class Value, class Back, class Both, class Forth>
  void back_and_forth(Value* t, Value* s, const Back& back, const Both& both, const Forth& forth) {
#pragma omp parallel num_threads(threads_)
    {
      for (int colour = colours() - 1; colour > 0; colour--) turn(colour, true, t, back);
      turn(0, colours() > 1, s, both);
      for (int colour = 1; colour < colours(); colour++)
        turn(colour, colour + 1 < colours(), s, forth);
    }
  }

  template <std::size_t count>
  std::array<double, count> sums(const std::array<const double*, count>& of_groups) const {
    return sums_over<count>([&](Groups groups, ExactSums<count>& sums) {
      for (std::size_t i = 0; i < count; i++)
        for (std::int64_t g = groups.first; g < groups.past; g++) sums[i].add(of_groups[i][g]);
    });
  }

  // The sums, over all ranks, of all that work(groups, sums) adds to them. One reduction.
  template <std::size_t count, class Work>
  std::array<double, count> sums_over(const Work& work) const {
    ExactSums<count> mine;
#pragma omp parallel num_threads(threads_)
    {
      ExactSums<count> its;
      part_of_all([&](Groups groups) { work(groups, its); });
#pragma omp critical
      for (std::size_t i = 0; i < count; i++) mine[i].add(its[i]);
    }
    return over_ranks(mine, comm_);
  }

  // Of all ranks.
  double greatest(double here) const {
    MPI_Allreduce(MPI_IN_PLACE, &here, 1, MPI_DOUBLE, MPI_MAX, comm_);
    return here;
  }

  // Takes what others have of a vector.
  template <class Value>
  void fetch(Value* vector) {
    halo_of(vector).all(vector);
  }

 private:
  Halo<float>& halo_of(const float*) { return floats_; }
  Halo<double>& halo_of(const double*) { return doubles_; }
  int colours() const { return static_cast<int>(colours_.size()); }

  std::int64_t lines_of(std::int64_t past_group) const {
    std::int64_t lines = 0;
    for (std::int64_t group = 0; group < past_group; group++)
      lines += share_.is_own(group) ? share_.order.block_rows : 0;
    return lines;
  }

  // awaited: do other ranks need what this colour wrote?
  template <class Value, class Work>
  void turn(int colour, bool awaited, Value* vector, const Work& work) {
    const ColourLinks& groups = colours_[static_cast<std::size_t>(colour)];
    Halo<Value>& halo = halo_of(vector);
    awaited = awaited && !groups.links.empty();
    part(groups.first, work);
    if (awaited) {
#pragma omp barrier
#pragma omp master
      halo.begin(colour, vector);
    }
    part(groups.rest, work);
    if (awaited) {
#pragma omp master
      halo.end(colour, vector);
    }
#pragma omp barrier
  }

  template <class Work>
  void part_of_all(const Work& work) const {
    for (const ColourLinks& colour : colours_) {
      part(colour.first, work);
      part(colour.rest, work);
    }
  }

  // This thread's share of the groups.
  template <class Work>
  static void part(const std::vector<std::int32_t>& groups, const Work& work) {
    const auto thread = static_cast<std::size_t>(thread_here());
    const auto threads = static_cast<std::size_t>(threads_here());
    const std::size_t end = groups.size() * (thread + 1) / threads;
    for (std::size_t i = groups.size() * thread / threads; i < end; i++)
      work(Groups{groups[i], groups[i] + 1});
  }

  const Share& share_;
  std::vector<ColourLinks> colours_;
  Halo<float> floats_;
  Halo<double> doubles_;
  int threads_;
  MPI_Comm comm_;
};

}  // namespace flowos::solve
