#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <vector>

#include "base/for_each.h"
#include "base/storage.h"
#include "matrix/matrix.h"

namespace flowos::solve {

// An order in which to go over the rows of a graph, such that rows that touch lie near each other,
// cut into chunks most of whose rows touch no other chunk. Depends on the matrix alone.
struct Walk {
  struct Chunk {
    std::int64_t number = 0;
    std::span<const std::int32_t> rows;
    std::int64_t first = 0, past = 0;  // they are all the rows of [first, past), in some order

    bool holds(std::int64_t row) const { return row >= first && row < past; }
  };

  Raw<std::int32_t> rows;
  std::vector<std::int32_t> outer;  // the rows that touch other chunks
  std::int64_t chunk_rows = 1;

  std::int64_t chunks() const { return (std::ssize(rows) + chunk_rows - 1) / chunk_rows; }

  // work(chunk) for all of them.
  template <class Work>
  void each_chunk(int threads, const Work& work) const {
    for_runs(std::ssize(rows), chunk_rows, threads, [&](std::int64_t first, std::int64_t past) {
      work(Chunk{.number = first / chunk_rows,
                 .rows = std::span(rows).subspan(at(first), at(past - first)),
                 .first = first,
                 .past = past});
    });
  }
};

// As rows are numbered, where most touch only rows of near numbers; else as blocks grow, in one
// chunk. threads: as in ordering.h.
template <class Index>
Walk walk_of(const Csr<Index>& matrix, int threads);

}  // namespace flowos::solve
