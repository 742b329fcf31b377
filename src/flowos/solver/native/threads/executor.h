#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>

#include "base/exact_sum.h"
#include "ordering/groups.h"
#include "ordering/ordering.h"

namespace flowos::solve {

// Executes coloured sweeps: calls work(groups) for groups of one colour at a time. Groups of a
// colour do not depend on each other, so that any number of threads or ranks computes the same
// bits. Models: ThreadExecutor (threads of this process), RankExecutor (MPI ranks).
template <class E>
concept Executor = requires(E& executor, int colour, void (*work)(Groups), float* vector,
                            const Ordering& ordering, void (*of_row)(std::size_t, std::size_t),
                            const std::array<const double*, 1>& of_groups, ExactSums<1>& sums) {
  { executor.colours() } -> std::same_as<int>;
  { executor.threads() } -> std::same_as<int>;
  // Whether other processes compute some of the groups.
  { executor.is_distributed() } -> std::same_as<bool>;
  // Steps of the groups that this process computes, of colours [first, past).
  { executor.lines(colour, colour) } -> std::same_as<std::int64_t>;
  // All groups, or those of colours [first, past), in any order.
  executor.each(work);
  executor.each(colour, colour, work);
  // of_row(row, place) for the rows of all groups of this process.
  executor.each_row(ordering, of_row);
  // With those that other processes compute and this one only reads.
  executor.each_held(work);
  // The groups of one colour; then each process has the lines of `vector` that it reads.
  executor.turn(colour, vector, work);
  // Gets all lines of `vector` that this process reads.
  executor.fetch(vector);
  // Adds the values of all groups of this process to `sums`; the totals of all processes.
  executor.add(of_groups, sums);
  { executor.total(sums) } -> std::same_as<std::array<double, 1>>;
  // The maximum over all processes.
  { executor.greatest(double()) } -> std::same_as<double>;
};

// The sums, over all groups of all processes, of one value per group.
template <Executor E, std::size_t count>
std::array<double, count> group_sums(E& executor,
                                     const std::array<const double*, count>& of_groups) {
  ExactSums<count> sums;
  executor.add(of_groups, sums);
  return executor.total(sums);
}

// Adds the values of these groups.
template <std::size_t count>
void add_groups(Groups groups, const std::array<const double*, count>& of_groups,
                ExactSums<count>& sums) {
  for (std::size_t i = 0; i < count; ++i) {
    for (std::int64_t g = groups.first; g < groups.past; ++g) sums[i].add(of_groups[i][g]);
  }
}

}  // namespace flowos::solve
