// Places of rows. Rows that touch stay in the order of growth, so that the factor is that
// of the grown blocks; rows that do not touch change their order until those of a step are alike.

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/for_each.h"
#include "ordering/graph.h"
#include "ordering/ordering.h"
#include "ordering/places.h"

namespace flowos::solve {
namespace {

// How many entries a row has left and right of the diagonal in this ordering; of each up
// to seven are distinguished. Kinds are numbered from few entries to many.
class Kinds {
 public:
  static constexpr int kCount = 64;  // what has that number has no entries at all

  constexpr Kinds() {
    int kind = 0;
    for (int sum = 0; sum <= 2 * kMax; ++sum) {
      for (int left = std::max(0, sum - kMax); left <= std::min(sum, kMax); ++left, ++kind) {
        number_[at(left)][at(sum - left)] = static_cast<std::uint8_t>(kind);
        left_[at(kind)] = left;
        right_[at(kind)] = sum - left;
      }
    }
    for (int room = 0; room < kCount; ++room) {
      for (int one = 0; one < kCount; ++one) {
        const bool fits = left(one) <= left(room) && right(one) <= right(room);
        within_[at(room)] |= fits ? std::uint64_t{1} << one : 0;
      }
    }
  }

  constexpr int number(int left, int right) const {
    return number_[at(std::min(left, kMax))][at(std::min(right, kMax))];
  }
  constexpr int left(int kind) const { return left_[at(kind)]; }
  constexpr int right(int kind) const { return right_[at(kind)]; }
  // As bits: those that have no more entries, on either side.
  constexpr std::uint64_t within(int kind) const { return within_[at(kind)]; }

 private:
  static constexpr int kMax = 7;
  std::array<std::array<std::uint8_t, kMax + 1>, kMax + 1> number_{};
  std::array<int, kCount + 1> left_{};
  std::array<int, kCount + 1> right_{};
  std::array<std::uint64_t, kCount> within_{};
};

constexpr Kinds kKinds;

// The block of one lane: its rows, and which of them may be next.
class Lane {
 public:
  void clear() {
    rows_.clear();
    ready_.clear();
    kinds_ = 0;
  }

  void load(const Blocks& blocks, const std::vector<std::int32_t>& colours, std::int64_t block) {
    clear();
    const Look look{.blocks = blocks,
                    .colours = colours,
                    .first = blocks.first_of(block),
                    .end = blocks.end_of(block),
                    .colour = colours[at(block)]};
    rows_.resize(at(look.end - look.first));
    next_.resize(at(blocks.starts[at(look.end)] - blocks.starts[at(look.first)]));
    std::int32_t next = 0;
    for (std::int32_t i = 0; i < look.end - look.first; ++i) next = load_row(look, i, next);
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (rows_[i].waits == 0) make_ready(static_cast<std::int32_t>(i));
    }
  }

  // As bits: of rows that may be next. 0: there are no more.
  std::uint64_t kinds() const { return kinds_; }

  // A row of this kind.
  std::int32_t take(int kind) {
    const auto found = std::find_if(ready_.begin(), ready_.end(), [&](std::int32_t number) {
      return rows_[at(number)].kind == kind;
    });
    const Row& taken = rows_[at(*found)];
    *found = ready_.back();
    ready_.pop_back();
    kinds_ &= ~(std::uint64_t{--count_[at(kind)] == 0} << kind);
    for (std::int32_t i = taken.next_begin; i < taken.next_end; ++i) {
      const std::int32_t next = next_[at(i)];
      if (--rows_[at(next)].waits == 0) make_ready(next);
    }
    return taken.row;
  }

 private:
  struct Row {
    std::int32_t row = -1;
    int kind = 0;
    std::int32_t waits = 0;                     // for so many rows of the block
    std::int32_t next_begin = 0, next_end = 0;  // in next_: the rows that wait for it
  };

  // Where a block is looked up.
  struct Look {
    const Blocks& blocks;
    const std::vector<std::int32_t>& colours;
    std::int32_t first, end;  // members
    std::int32_t colour;
  };

  // next: how much of next_ is in use, before and after. Without branches, which would be guessed
  // wrong.
  std::int32_t load_row(const Look& look, std::int32_t number, std::int32_t next) {
    const std::int64_t member = look.first + number;
    const auto size = static_cast<std::uint32_t>(look.end - look.first);
    int left = 0;
    int right = 0;
    rows_[at(number)].next_begin = next;
    for (std::int64_t k = look.blocks.starts[at(member)]; k < look.blocks.starts[at(member + 1)];
         ++k) {
      const std::int32_t link = look.blocks.links[at(k)];
      const bool inside = static_cast<std::uint32_t>(link - look.first) < size;
      const std::int32_t colour = look.colours[at(link / look.blocks.max_rows)];
      const std::int32_t ahead = inside ? link - look.first - number : colour - look.colour;
      left += ahead < 0 ? 1 : 0;
      right += ahead > 0 ? 1 : 0;
      const int waits = static_cast<int>(inside) & static_cast<int>(ahead > 0);
      next_[at(next)] = link - look.first;
      next += waits;
      rows_[at(link - look.first) * at(waits)].waits += waits;
    }
    Row& row = rows_[at(number)];
    row.row = look.blocks.rows[at(member)];
    row.next_end = next;
    row.kind = kKinds.number(left, right);
    return next;
  }

  void make_ready(std::int32_t number) {
    ready_.push_back(number);
    const int kind = rows_[at(number)].kind;
    kinds_ |= std::uint64_t{1} << kind;
    ++count_[at(kind)];
  }

  std::vector<Row> rows_;
  std::vector<std::int32_t> next_;
  std::vector<std::int32_t> ready_;
  std::uint64_t kinds_ = 0;
  std::array<int, Kinds::kCount> count_{};  // of the ready rows of each kind
};

// In each step one row of each lane, as alike as can be.
class Alignment {
 public:
  explicit Alignment(int lanes) : lanes_(at(lanes)), kinds_(at(lanes)) {}

  std::vector<Lane>& lanes() { return lanes_; }

  // The kind that leaves least padding if each lane takes the row that fits into it best. -1: there
  // are no more rows.
  int best_room() {
    std::uint64_t all = 0;
    active_ = 0;
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
      kinds_[lane] = lanes_[lane].kinds();
      all |= kinds_[lane];
      active_ += kinds_[lane] != 0 ? 1 : 0;
    }
    int best = -1;
    int least = std::numeric_limits<int>::max();
    for (; all != 0 && least > 0; all &= all - 1) {
      const int room = std::countr_zero(all);
      const int padding = padding_in(room);
      best = padding < least ? room : best;
      least = std::min(padding, least);
    }
    return best;
  }

  // Of the kinds the one that fits best: it fills the room, or is the least of those that do not
  // fit; kCount where there are none. Bits are counted where there are some, as processors that
  // cannot count none would guess.
  static int best_in(std::uint64_t kinds, int room) {
    constexpr std::uint64_t kLast = std::uint64_t{1} << (Kinds::kCount - 1);
    const std::uint64_t fitting = kinds & kKinds.within(room);
    const int widest = __builtin_clzll(fitting | 1) ^ 63;
    const int narrowest = __builtin_ctzll(kinds | kLast) + (kinds == 0 ? 1 : 0);
    return fitting != 0 ? widest : narrowest;
  }

 private:
  int padding_in(int room) const {
    int left = 0;
    int right = 0;
    int sum = 0;
    for (const std::uint64_t kinds : kinds_) {
      const auto kind = best_in(kinds, room);
      left = std::max(left, kKinds.left(kind));
      right = std::max(right, kKinds.right(kind));
      sum += kKinds.left(kind) + kKinds.right(kind);
    }
    return active_ * (left + right) - sum;
  }

  std::vector<Lane> lanes_;
  std::vector<std::uint64_t> kinds_;  // of each lane
  int active_ = 0;                    // lanes that have rows
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
    const int room = alignment.best_room();
    for (Lane& lane : alignment.lanes()) {
      const std::uint64_t kinds = lane.kinds();
      const std::int32_t row = kinds == 0 ? -1 : lane.take(Alignment::best_in(kinds, room));
      ordering.row[at(place)] = row;
      if (row >= 0) ordering.place[at(row)] = static_cast<std::int32_t>(place);
      ++place;
    }
  }
}

}  // namespace

Ordering place_blocks(const Blocks& blocks, const std::vector<std::int32_t>& colours, int lanes,
                      int threads) {
  constexpr std::int64_t kRunRows = 1 << 13;
  const Groups groups = groups_of(colours, lanes);
  Ordering ordering;
  ordering.rows = static_cast<std::int64_t>(blocks.rows.size());
  ordering.lanes = lanes;
  ordering.block_rows = blocks.max_rows;
  ordering.colour_starts = groups.colour_starts;
  check_places(ordering.groups(), ordering.block_rows, lanes);
  ordering.place.resize(at(ordering.rows));
  ordering.row.resize(at(ordering.places()));
  const std::int64_t run = std::max<std::int64_t>(1, kRunRows / blocks.max_rows / lanes);
  for_runs(ordering.groups(), run, threads, [&](std::int64_t first, std::int64_t end) {
    Alignment alignment(lanes);
    for (std::int64_t group = first; group < end; ++group) {
      for (int lane = 0; lane < lanes; ++lane) {
        const std::int32_t block = groups.blocks[at(group * lanes + lane)];
        Lane& to = alignment.lanes()[at(lane)];
        if (block >= 0) {
          to.load(blocks, colours, block);
        } else {
          to.clear();
        }
      }
      write_group(ordering, group, alignment);
    }
  });
  return ordering;
}

}  // namespace flowos::solve
