#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "ordering/groups.h"
#include "ordering/ordering.h"
#include "threads/exact_reduce.h"
#include "threads/team.h"

namespace flowos::solve {

// Who computes the groups of an ordering, colour by colour: here threads of one process, all
// groups. RankExecutor of mpi/ is the same for many ranks.
class ThreadExecutor {
 public:
  ThreadExecutor(Ordering ordering, int threads)
      : ordering_(std::move(ordering)), threads_(threads) {}

  bool has_others() const { return false; }
  const Ordering& ordering() const { return ordering_; }
  int threads() const { return threads_; }
  // Steps of groups that are computed here, and of them those of the first colour.
  std::int64_t lines() const { return ordering_.groups() * ordering_.block_rows; }
  std::int64_t first_lines() const { return ordering_.colour_starts[1] * ordering_.block_rows; }

  // work(groups) for all, in any order.
  template <class Work>
  void each(const Work& work) const {
    share_out(0, ordering_.groups(), ordering_.block_rows, threads_, work);
  }

  // work(row, its place) for all that are computed here.
  template <class Work>
  void each_row(const Work& work) const {
    share_out(0, ordering_.rows, 1, threads_, [&](Groups rows) {
      for (auto row = static_cast<std::size_t>(rows.first);
           row < static_cast<std::size_t>(rows.past); ++row) {
        work(row, static_cast<std::size_t>(ordering_.place[row]));
      }
    });
  }

  // Groups: with those that others compute and that are only read here: none.
  template <class Work>
  void each_held(const Work& work) const {
    each(work);
  }

  // work(groups) writes the vector's lines of these groups, from those of the same block and of
  // earlier colours.
  template <class T, class Work>
  void forward(T*, const Work& work) const {
    for (int colour = 0; colour < ordering_.colours(); ++colour) turn(colour, work);
  }
  template <class T, class Work>
  void backward(T*, const Work& work) const {
    for (int colour = ordering_.colours() - 1; colour >= 0; --colour) turn(colour, work);
  }

  // From the last colour to the first, which `back` does to a vector, and from there to the last,
  // which `forth` does to another. `both` does both to the first colour, whose rows have no others
  // before them than those of their own block: it is still in the cache.
  template <class T, class Back, class Both, class Forth>
  void back_and_forth(T*, T*, const Back& back, const Both& both, const Forth& forth) const {
    for (int colour = ordering_.colours() - 1; colour > 0; --colour) turn(colour, back);
    turn(0, both);
    for (int colour = 1; colour < ordering_.colours(); ++colour) turn(colour, forth);
  }

  double greatest(double here) const { return here; }
  // Takes what others have of a vector: all of it is here.
  template <class T>
  void fetch(T*) const {}

  // Of each of these the sum over all groups.
  template <std::size_t count>
  std::array<double, count> sums(const std::array<const double*, count>& of_groups) const {
    return sums_over<count>(0, ordering_.groups(), 1, threads_,
                            [&](Groups some, ExactSums<count>& sums) {
                              for (std::size_t i = 0; i < count; ++i)
                                for (std::int64_t g = some.first; g < some.past; ++g)
                                  sums[i].add(of_groups[i][g]);
                            });
  }

 private:
  template <class Work>
  void turn(int colour, const Work& work) const {
    const auto c = static_cast<std::size_t>(colour);
    share_out(ordering_.colour_starts[c], ordering_.colour_starts[c + 1], ordering_.block_rows,
              threads_, work);
  }

  Ordering ordering_;
  int threads_;
};

}  // namespace flowos::solve
