#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "mpi/links.h"
#include "mpi/partition.h"

namespace flowos::solve {

// Of each rank a list.
using OfRanks = std::vector<std::vector<std::int32_t>>;

// Gives each rank its list, and takes what each has for this one.
inline OfRanks exchanged(const OfRanks& lists, MPI_Comm comm) {
  const std::size_t ranks = lists.size();
  std::vector<int> out(ranks), in(ranks), out_starts(ranks), in_starts(ranks);
  std::vector<std::int32_t> sent;
  for (std::size_t rank = 0; rank < ranks; rank++) {
    out[rank] = static_cast<int>(lists[rank].size());
    out_starts[rank] = static_cast<int>(sent.size());
    sent.insert(sent.end(), lists[rank].begin(), lists[rank].end());
  }
  MPI_Alltoall(out.data(), 1, MPI_INT, in.data(), 1, MPI_INT, comm);
  int sum = 0;
  for (std::size_t rank = 0; rank < ranks; rank++) {
    in_starts[rank] = sum;
    sum += in[rank];
  }
  std::vector<std::int32_t> taken(static_cast<std::size_t>(sum));
  MPI_Alltoallv(sent.data(), out.data(), out_starts.data(), MPI_INT32_T, taken.data(), in.data(),
                in_starts.data(), MPI_INT32_T, comm);
  OfRanks result(ranks);
  for (std::size_t rank = 0; rank < ranks; rank++)
    result[rank].assign(taken.begin() + in_starts[rank],
                        taken.begin() + in_starts[rank] + in[rank]);
  return result;
}

// Of a vector in lanes whose groups have these owners: what is exchanged of each colour when each
// rank says which lines it reads. A line is one step of a group.
class Requests {
 public:
  Requests(const std::vector<std::int64_t>& colour_starts, int steps, const Owners& owners,
           MPI_Comm comm)
      : colour_starts_(colour_starts), steps_(steps), owners_(owners), comm_(comm) {
    MPI_Comm_rank(comm, &rank_);
    MPI_Comm_size(comm, &ranks_);
  }

  // read: of each line whether this rank reads it; one of its own does not count. On all ranks.
  std::vector<ColourLinks> links(const std::vector<std::uint8_t>& read) const {
    OfRanks asked(static_cast<std::size_t>(ranks_));
    for (std::size_t line = 0; line < read.size(); line++) {
      const std::int32_t owner = owner_of(static_cast<std::int32_t>(line));
      if (read[line] && owner != rank_)
        asked[static_cast<std::size_t>(owner)].push_back(static_cast<std::int32_t>(line));
    }
    const OfRanks requested = exchanged(asked, comm_);
    std::vector<std::map<int, Link>> found(colour_starts_.size() - 1);
    std::vector<bool> awaited(owners_.size());
    for (int rank = 0; rank < ranks_; rank++) {
      const auto of_rank = static_cast<std::size_t>(rank);
      for (const std::int32_t line : asked[of_rank])
        found[colour_at(line)][rank].in.push_back(line);
      for (const std::int32_t line : requested[of_rank]) {
        found[colour_at(line)][rank].out.push_back(line);
        awaited[static_cast<std::size_t>(line / steps_)] = true;
      }
    }
    return colours(found, awaited);
  }

 private:
  std::int32_t owner_of(std::int32_t line) const {
    return owners_[static_cast<std::size_t>(line / steps_)];
  }
  std::size_t colour_at(std::int32_t line) const {
    return static_cast<std::size_t>(colour_of(colour_starts_, line / steps_));
  }

  std::vector<ColourLinks> colours(std::vector<std::map<int, Link>>& found,
                                   const std::vector<bool>& awaited) const {
    std::vector<ColourLinks> result(found.size());
    for (std::size_t colour = 0; colour < found.size(); colour++) {
      for (auto group = colour_starts_[colour]; group < colour_starts_[colour + 1]; group++)
        if (owners_[static_cast<std::size_t>(group)] == rank_)
          (awaited[static_cast<std::size_t>(group)] ? result[colour].first : result[colour].rest)
              .push_back(static_cast<std::int32_t>(group));
      for (auto& [rank, link] : found[colour]) {
        link.rank = rank;
        result[colour].links.push_back(std::move(link));
      }
    }
    return result;
  }

  const std::vector<std::int64_t>& colour_starts_;
  int steps_;
  const Owners& owners_;
  MPI_Comm comm_;
  int rank_ = 0, ranks_ = 1;
};

}  // namespace flowos::solve
