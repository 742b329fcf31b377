// Rows coloured one by one.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "base/for_each.h"
#include "base/storage.h"
#include "matrix/matrix.h"
#include "ordering/ordering.h"
#include "ordering/painter.h"
#include "ordering/places.h"
#include "ordering/traversal.h"

namespace flowos::solve {
namespace {

constexpr std::int64_t kWindow = 2048;  // rows among which those that are alike are put together
constexpr int kSteps = 8;               // of a group: any number would do
constexpr std::int32_t kNone = -1;      // padding

// Rows that touch other chunks get their colours first, one after the other; after that chunks do
// not see each other.
template <class Index>
Raw<std::int32_t> colours_of(const Csr<Index>& matrix, const Walk& walk, int threads) {
  Raw<std::int32_t> colours(at(matrix.rows));
  walk.each_chunk(threads, [&](const Walk::Chunk& chunk) {
    for (const std::int32_t row : chunk.rows) colours[at(row)] = kNoColour;
  });
  const auto paint = [&](std::int32_t row, Painter& painter) {
    for (Index k = matrix.starts[row]; k < matrix.starts[row + 1]; ++k) {
      painter.forbid(colours[at(matrix.columns[k])], row);
    }
    colours[at(row)] = painter.choose(row);
  };
  Painter of_outer;
  for (const std::int32_t row : walk.outer) paint(row, of_outer);
  walk.each_chunk(threads, [&](const Walk::Chunk& chunk) {
    Painter painter;
    for (const std::int32_t row : chunk.rows) {
      if (colours[at(row)] == kNoColour) paint(row, painter);
    }
  });
  return colours;
}

// Rows of a colour in the order of the walk, from the place on where its first group begins.
struct Listed {
  Raw<std::int32_t> rows;          // of each place
  std::vector<std::int64_t> past;  // of each colour the place after its last row
};

Listed list_rows(const Walk& walk, const Raw<std::int32_t>& colours, Ordering& ordering,
                 int threads) {
  std::vector<std::vector<std::int64_t>> next(at(walk.chunks()));  // of chunks and colours: places
  walk.each_chunk(threads, [&](const Walk::Chunk& chunk) {
    std::vector<std::int64_t>& count = next[at(chunk.number)];
    for (const std::int32_t row : chunk.rows) {
      const std::size_t colour = at(colours[at(row)]);
      if (colour >= count.size()) count.resize(colour + 1);
      ++count[colour];
    }
  });
  std::size_t all = 0;
  for (auto& count : next) all = std::max(all, count.size());
  for (auto& count : next) count.resize(all);
  Listed listed;
  ordering.colour_starts.push_back(0);
  for (std::size_t colour = 0; colour < all; ++colour) {
    std::int64_t place = ordering.places();
    for (auto& count : next) place += std::exchange(count[colour], place);
    listed.past.push_back(place);
    const std::int64_t each = ordering.group_places();
    ordering.colour_starts.push_back((place + each - 1) / each);
  }
  check_places(ordering.groups(), ordering.block_rows, ordering.lanes);
  listed.rows.resize(at(ordering.places()));
  walk.each_chunk(threads, [&](const Walk::Chunk& chunk) {
    for (const std::int32_t row : chunk.rows) {
      listed.rows[at(next[at(chunk.number)][at(colours[at(row)])]++)] = row;
    }
  });
  return listed;
}

// How many entries a row has left and right of the diagonal in this ordering.
template <class Index>
std::uint8_t kind_of(const Csr<Index>& matrix, const Raw<std::int32_t>& colours, std::int64_t row) {
  constexpr int kMax = 15;  // are distinguished
  int left = 0, right = 0;
  for (Index k = matrix.starts[row]; k < matrix.starts[row + 1]; ++k) {
    const std::int32_t other = colours[at(matrix.columns[k])];
    left += other < colours[at(row)] ? 1 : 0;
    right += other > colours[at(row)] ? 1 : 0;
  }
  return static_cast<std::uint8_t>(std::min(left, kMax) * (kMax + 1) + std::min(right, kMax));
}

// Places for the rows of a window, from `place` on: those that are alike together, so that little
// of what is stored for a step is padding.
template <class Index>
void place_window(const Csr<Index>& matrix, const Raw<std::int32_t>& colours,
                  std::span<const std::int32_t> rows, std::int64_t place, Ordering& ordering) {
  std::array<std::uint8_t, kWindow> kinds;
  std::array<std::int64_t, 257> next = {};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    kinds[i] = kind_of(matrix, colours, rows[i]);
    ++next[kinds[i] + std::size_t{1}];
  }
  next[0] = place;
  std::partial_sum(next.begin(), next.end(), next.begin());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::int64_t to = next[kinds[i]]++;
    ordering.row[at(to)] = rows[i];
    ordering.place[at(rows[i])] = static_cast<std::int32_t>(to);
  }
}

}  // namespace

template <class Index>
Ordering order_points(const Csr<Index>& matrix, const Walk& walk, int lanes, int threads) {
  Ordering ordering;
  ordering.rows = matrix.rows;
  ordering.lanes = lanes;
  ordering.block_rows = kSteps;
  const Raw<std::int32_t> colours = colours_of(matrix, walk, threads);
  const Listed listed = list_rows(walk, colours, ordering, threads);
  ordering.place.resize(at(matrix.rows));
  ordering.row.resize(at(ordering.places()));
  for (std::size_t colour = 0; colour < listed.past.size(); ++colour) {
    const std::int64_t begin = ordering.colour_starts[colour] * ordering.group_places();
    const std::int64_t past = listed.past[colour];
    for_runs(past - begin, kWindow, threads, [&](std::int64_t first, std::int64_t end) {
      place_window(matrix, colours,
                   std::span(listed.rows).subspan(at(begin + first), at(end - first)),
                   begin + first, ordering);
    });
    const std::int64_t end = ordering.colour_starts[colour + 1] * ordering.group_places();
    std::fill(ordering.row.begin() + past, ordering.row.begin() + end, kNone);
  }
  return ordering;
}

template Ordering order_points(const Csr<std::int32_t>&, const Walk&, int, int);
template Ordering order_points(const Csr<std::int64_t>&, const Walk&, int, int);

}  // namespace flowos::solve
