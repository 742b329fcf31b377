// Places of rows. The order of growth is kept between rows that touch, so that the factor is that
// of the grown blocks; rows that do not touch change their order until those of a step are alike.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "matrix.h"
#include "ordering.h"
#include "ordering_graph.h"
#include "ordering_parts.h"

namespace flowos::solve {
namespace {

// How many entries a row has left and right of the diagonal in the order that is made.
struct Entries {
  std::int32_t left = 0;
  std::int32_t right = 0;

  std::int32_t all() const { return left + right; }
  bool operator==(const Entries&) const = default;
};

Entries wider(const Entries& one, const Entries& other) {
  return {.left = std::max(one.left, other.left), .right = std::max(one.right, other.right)};
}

// The block of one lane: its rows, and which of them may be next.
class Lane {
 public:
  template <class Index>
  void load(const Csr<Index>& matrix, const Blocks& blocks,
            const std::vector<std::int32_t>& colours, std::int64_t block);
  void clear() {
    rows_.clear();
    ready_.clear();
  }

  struct Row {
    std::int32_t row;
    Entries entries;
    std::int32_t waits;       // rows that must come before it and have not
    std::int32_t next_begin;  // in next_: the rows that wait for it
    std::int32_t next_end;
  };

  // Rows that wait for none.
  const std::vector<std::int32_t>& ready() const { return ready_; }
  const Row& row(std::int32_t number) const { return rows_[at(number)]; }

  // Takes the row that is `chosen` in ready().
  std::int32_t take(std::size_t chosen) {
    const Row& taken = row(ready_[chosen]);
    ready_.erase(ready_.begin() + static_cast<std::ptrdiff_t>(chosen));
    for (std::int32_t i = taken.next_begin; i < taken.next_end; ++i) {
      const std::int32_t next = next_[at(i)];
      if (--rows_[at(next)].waits == 0) ready_.push_back(next);
    }
    return taken.row;
  }

 private:
  std::vector<Row> rows_;
  std::vector<std::int32_t> next_;
  std::vector<std::int32_t> ready_;
};

template <class Index>
void Lane::load(const Csr<Index>& matrix, const Blocks& blocks,
                const std::vector<std::int32_t>& colours, std::int64_t block) {
  const std::int32_t first = blocks.starts[at(block)];
  const std::int32_t end = blocks.starts[at(block) + 1];
  clear();
  next_.clear();
  rows_.resize(at(end - first), {});
  for (std::int32_t i = first; i < end; ++i) {
    Row& here = rows_[at(i - first)];
    here.row = blocks.members[at(i)];
    here.next_begin = static_cast<std::int32_t>(next_.size());
    for (Index k = matrix.starts[here.row]; k < matrix.starts[here.row + 1]; ++k) {
      const auto column = at(matrix.columns[k]);
      const std::int32_t other = blocks.block[column];
      const std::int32_t step = blocks.step[column];
      const bool same = other == block;
      const std::int64_t ahead =
          same ? step - (i - first) : colours[at(other)] - colours[at(block)];
      here.entries.left += ahead < 0 ? 1 : 0;
      here.entries.right += ahead > 0 ? 1 : 0;
      if (!same || ahead <= 0) continue;
      next_.push_back(step);
      ++rows_[at(step)].waits;
    }
    here.next_end = static_cast<std::int32_t>(next_.size());
  }
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    if (rows_[i].waits == 0) ready_.push_back(static_cast<std::int32_t>(i));
  }
}

// Gives the rows of a group's blocks to steps: in each step one of each lane, as alike as can be.
class Alignment {
 public:
  explicit Alignment(int lanes) : lanes_(at(lanes)), chosen_(at(lanes)) {}

  std::vector<Lane>& lanes() { return lanes_; }

  // Of each lane which of its ready rows comes next.
  const std::vector<std::size_t>& choose() {
    count();
    std::int64_t least = -1;
    for (int tries = 0; tries < 3 && !kinds_.empty(); ++tries) {
      const auto most = std::max_element(
          kinds_.begin(), kinds_.end(),
          [](const Kind& one, const Kind& other) { return one.lanes < other.lanes; });
      const std::int64_t padding = fit(most->entries);
      kinds_.erase(most);
      if (least >= 0 && padding >= least) continue;
      least = padding;
      chosen_.swap(fitting_);
      if (padding == 0) break;
    }
    return chosen_;
  }

 private:
  // A number of entries, and how many lanes have a ready row with it.
  struct Kind {
    Entries entries;
    int lanes;
    std::size_t last;
  };

  void count() {
    kinds_.clear();
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
      for (const std::int32_t row : lanes_[lane].ready()) add(lanes_[lane].row(row).entries, lane);
    }
  }

  void add(const Entries& entries, std::size_t lane) {
    for (Kind& kind : kinds_) {
      if (!(kind.entries == entries)) continue;
      kind.lanes += kind.last == lane ? 0 : 1;
      kind.last = lane;
      return;
    }
    kinds_.push_back({.entries = entries, .lanes = 1, .last = lane});
  }

  // Chooses of each lane the row that fits best into so many entries: what all are padded with.
  std::int64_t fit(const Entries& room) {
    fitting_.resize(lanes_.size());
    Entries widest;
    std::int64_t sum = 0;
    std::int64_t active = 0;
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
      const Lane& from = lanes_[lane];
      if (from.ready().empty()) continue;
      fitting_[lane] = best_in(from, room);
      const Entries& entries = from.row(from.ready()[fitting_[lane]]).entries;
      widest = wider(widest, entries);
      sum += entries.all();
      ++active;
    }
    return active * widest.all() - sum;
  }

  // What goes beyond the room makes all lanes longer; what leaves some of it is padded.
  static std::size_t best_in(const Lane& lane, const Entries& room) {
    constexpr std::int32_t kBeyond = 8;
    std::size_t best = 0;
    std::int32_t least = -1;
    for (std::size_t i = 0; i < lane.ready().size(); ++i) {
      const Entries& entries = lane.row(lane.ready()[i]).entries;
      const std::int32_t beyond = wider(entries, room).all() - room.all();
      const std::int32_t cost = kBeyond * beyond + room.all() + beyond - entries.all();
      if (least >= 0 && cost >= least) continue;
      least = cost;
      best = i;
    }
    return best;
  }

  std::vector<Lane> lanes_;
  std::vector<Kind> kinds_;
  std::vector<std::size_t> chosen_;
  std::vector<std::size_t> fitting_;
};

// Blocks, colour after colour; of each colour its first group.
struct Groups {
  std::vector<std::int32_t> blocks;  // of each group and lane; -1: none
  std::vector<std::int64_t> colour_starts;
};

Groups groups_of(const std::vector<std::int32_t>& colours, int lanes) {
  std::vector<std::int64_t> count;
  for (const std::int32_t colour : colours) {
    if (at(colour) >= count.size()) count.resize(at(colour) + 1);
    ++count[at(colour)];
  }
  Groups groups;
  std::vector<std::int64_t> next(count.size());
  std::int64_t first = 0;
  groups.colour_starts.push_back(0);
  for (std::size_t colour = 0; colour < count.size(); ++colour) {
    next[colour] = first * lanes;
    first += (count[colour] + lanes - 1) / lanes;
    if (count[colour] > 0) groups.colour_starts.push_back(first);
  }
  groups.blocks.resize(at(first * lanes), -1);
  for (std::size_t block = 0; block < colours.size(); ++block) {
    groups.blocks[at(next[at(colours[block])]++)] = static_cast<std::int32_t>(block);
  }
  return groups;
}

void write_group(Ordering& ordering, std::int64_t group, Alignment& alignment) {
  std::int64_t place = group * ordering.block_rows * ordering.lanes;
  for (int step = 0; step < ordering.block_rows; ++step) {
    const std::vector<std::size_t>& chosen = alignment.choose();
    for (std::size_t lane = 0; lane < chosen.size(); ++lane, ++place) {
      Lane& from = alignment.lanes()[lane];
      const std::int32_t row = from.ready().empty() ? -1 : from.take(chosen[lane]);
      ordering.row[at(place)] = row;
      if (row >= 0) ordering.place[at(row)] = static_cast<std::int32_t>(place);
    }
  }
}

}  // namespace

template <class Index>
Ordering place_blocks(const Csr<Index>& matrix, const Blocks& blocks,
                      const std::vector<std::int32_t>& colours, int lanes, int threads) {
  constexpr std::int64_t kRunRows = 1 << 13;
  const Groups groups = groups_of(colours, lanes);
  Ordering ordering;
  ordering.rows = matrix.rows;
  ordering.lanes = lanes;
  ordering.block_rows = blocks.most_rows;
  ordering.colour_starts = groups.colour_starts;
  check_places(ordering.groups(), ordering.block_rows, lanes);
  ordering.place.resize(at(matrix.rows));
  ordering.row.resize(at(ordering.places()));
  const std::int64_t run = std::max<std::int64_t>(1, kRunRows / blocks.most_rows / lanes);
  for_runs(ordering.groups(), run, threads, [&](std::int64_t first, std::int64_t end) {
    Alignment alignment(lanes);
    for (std::int64_t group = first; group < end; ++group) {
      for (int lane = 0; lane < lanes; ++lane) {
        const std::int32_t block = groups.blocks[at(group * lanes + lane)];
        Lane& to = alignment.lanes()[at(lane)];
        to.clear();
        if (block >= 0) to.load(matrix, blocks, colours, block);
      }
      write_group(ordering, group, alignment);
    }
  });
  return ordering;
}

template Ordering place_blocks(const Csr<std::int32_t>&, const Blocks&,
                               const std::vector<std::int32_t>&, int, int);
template Ordering place_blocks(const Csr<std::int64_t>&, const Blocks&,
                               const std::vector<std::int32_t>&, int, int);

}  // namespace flowos::solve
