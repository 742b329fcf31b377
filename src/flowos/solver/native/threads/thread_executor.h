#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/exact_sum.h"
#include "ordering/groups.h"
#include "ordering/ordering.h"
#include "threads/exact_reduce.h"
#include "threads/executor.h"
#include "threads/team.h"

namespace flowos::solve {

// Executes coloured sweeps with threads (see Executor); RankExecutor (mpi/) does the same with MPI
// ranks.
class ThreadExecutor {
 public:
  // Groups have `steps` steps each; colour_starts: the first group of each colour, and their count.
  ThreadExecutor(std::vector<std::int64_t> colour_starts, int steps, int threads)
      : colour_starts_(std::move(colour_starts)), steps_(steps), threads_(threads) {}

  int colours() const { return static_cast<int>(colour_starts_.size()) - 1; }
  int threads() const { return threads_; }
  bool is_distributed() const { return false; }
  std::int64_t lines(int first, int past) const {
    return (start_of(past) - start_of(first)) * steps_;
  }

  template <class Work>
  void each(const Work& work) const {
    each(0, colours(), work);
  }
  template <class Work>
  void each(int first, int past, const Work& work) const {
    share_out(start_of(first), start_of(past), steps_, threads_, work);
  }
  template <class Work>
  void each_held(const Work& work) const {
    each(work);
  }
  // In the order of rows: vectors outside of the sweeps are read and written in one stream.
  template <class Work>
  void each_row(const Ordering& ordering, const Work& work) const {
    share_out(0, ordering.rows, 1, threads_, [&](Groups rows) {
      for (auto row = static_cast<std::size_t>(rows.first);
           row < static_cast<std::size_t>(rows.past); ++row) {
        work(row, static_cast<std::size_t>(ordering.place[row]));
      }
    });
  }
  template <class T, class Work>
  void turn(int colour, T*, const Work& work) const {
    each(colour, colour + 1, work);
  }
  template <class T>
  void fetch(T*) const {}

  template <std::size_t count>
  void add(const std::array<const double*, count>& of_groups, ExactSums<count>& sums) const {
    add_over(
        0, colour_starts_.back(), 1, threads_,
        [&](Groups some, ExactSums<count>& partial) { add_groups(some, of_groups, partial); },
        sums);
  }
  template <std::size_t count>
  std::array<double, count> total(const ExactSums<count>& sums) const {
    return values_of(sums);
  }
  double greatest(double value) const { return value; }

 private:
  std::int64_t start_of(int colour) const {
    return colour_starts_[static_cast<std::size_t>(colour)];
  }

  std::vector<std::int64_t> colour_starts_;
  int steps_;
  int threads_;
};

}  // namespace flowos::solve
