// The share of a matrix on each rank of the MPI program: together the whole, in its order.

#include "mpi/share.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "check.h"
#include "matrix/generate.h"
#include "matrix/grid.h"
#include "matrix/matrix.h"
#include "mpi/links.h"
#include "mpi/partition.h"
#include "ordering/ordering.h"

using namespace flowos::solve;

namespace {

constexpr Grid kGrid{.cells = {13, 9, 18}};

void rows_of_poisson_are_those_that_are_generated(const Grid& grid) {
  const OwnedCsr<std::int32_t> matrix = poisson(grid);
  const RowsOfPoisson rows{grid};
  std::size_t at = 0;
  for (std::int64_t row = 0; row < matrix.view().rows; row++)
    rows.each(row, [&](std::int64_t column, double value) {
      CHECK(matrix.columns[at] == column);
      CHECK(matrix.values[at] == value);
      at++;
    });
  CHECK(at == matrix.values.size());
}

std::vector<Ordering> orderings(const OwnedCsr<std::int32_t>& matrix) {
  return {order_tiles(kGrid, {4, 4, 4}, 8), order_graph(matrix.view(), 8, 5, 4)};
}

std::vector<Share> shares(const Ordering& order, const OwnedCsr<std::int32_t>& matrix, int ranks) {
  const Owners owners = split_in_order(order, ranks);
  const RowsOf<std::int32_t> rows{matrix.view()};
  std::vector<Share> made;
  made.reserve(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; rank++)
    made.push_back(share_of(order, owners, rank, rows, 1 + rank % 2));
  return made;
}

void every_group_is_owned_once_and_each_colour_is_shared_out_evenly(const Ordering& order) {
  const Owners owners = split_in_order(order, 3);
  for (int colour = 0; colour < order.colours(); colour++) {
    std::vector<std::int64_t> counts(3);
    const auto start = order.colour_starts[static_cast<std::size_t>(colour)];
    const auto end = order.colour_starts[static_cast<std::size_t>(colour) + 1];
    for (auto group = start; group < end; group++)
      counts.at(static_cast<std::size_t>(owners[static_cast<std::size_t>(group)]))++;
    const auto [least, most] = std::minmax_element(counts.begin(), counts.end());
    CHECK(*most - *least <= 1);
  }
}

void own_rows_are_those_of_the_whole(const Ordering& order, const OwnedCsr<std::int32_t>& matrix,
                                     int ranks) {
  std::vector<int> seen(static_cast<std::size_t>(order.rows));
  for (const Share& share : shares(order, matrix, ranks)) {
    for (std::int64_t row = 0; row < share.rows(); row++) {
      const auto here = static_cast<std::size_t>(row);
      const auto there = static_cast<std::size_t>(share.row[here]);
      CHECK(share.order.place[here] % order.group_places() ==
            order.place[there] % order.group_places());
      if (!share.is_own(share.group_of(row))) continue;
      seen[there]++;
      const auto count = static_cast<std::size_t>(matrix.starts[there + 1] - matrix.starts[there]);
      CHECK(share.matrix.starts[here + 1] - share.matrix.starts[here] ==
            static_cast<std::int32_t>(count));
      for (std::size_t i = 0; i < count; i++) {
        const auto at_here = static_cast<std::size_t>(share.matrix.starts[here]) + i;
        const auto at_there = static_cast<std::size_t>(matrix.starts[there]) + i;
        const auto column = static_cast<std::size_t>(share.matrix.columns[at_here]);
        CHECK(share.row[column] == matrix.columns[at_there]);
        CHECK(share.matrix.values[at_here] == matrix.values[at_there]);
      }
    }
  }
  CHECK(std::all_of(seen.begin(), seen.end(), [](int times) { return times == 1; }));
}

// Lines of a share by their number in the whole.
std::vector<std::int64_t> in_whole(const Share& share, const std::vector<std::int32_t>& lines) {
  std::vector<std::int64_t> found;
  for (const std::int32_t line : lines) {
    const auto group = static_cast<std::size_t>(line / share.order.block_rows);
    found.push_back(share.group[group] * share.order.block_rows + line % share.order.block_rows);
  }
  return found;
}

const Link* link_to(const ColourLinks& colour, int rank) {
  const auto found = std::find_if(colour.links.begin(), colour.links.end(),
                                  [rank](const Link& link) { return link.rank == rank; });
  return found == colour.links.end() ? nullptr : &*found;
}

void what_one_sends_is_what_the_other_takes(const Ordering& order,
                                            const OwnedCsr<std::int32_t>& matrix, int ranks) {
  const std::vector<Share> all = shares(order, matrix, ranks);
  std::vector<std::vector<ColourLinks>> links;
  links.reserve(all.size());
  for (const Share& share : all) links.push_back(links_of(share));
  std::size_t lines = 0;
  for (std::size_t from = 0; from < all.size(); from++)
    for (std::size_t colour = 0; colour < links[from].size(); colour++)
      for (const Link& link : links[from][colour].links) {
        const auto to = static_cast<std::size_t>(link.rank);
        const Link* other = link_to(links[to][colour], static_cast<int>(from));
        CHECK(other);
        CHECK(in_whole(all[from], link.out) == in_whole(all[to], other->in));
        CHECK(in_whole(all[from], link.in) == in_whole(all[to], other->out));
        lines += link.out.size();
      }
  CHECK(lines > 0);
}

void own_groups_are_computed_first_or_meanwhile(const Ordering& order,
                                                const OwnedCsr<std::int32_t>& matrix) {
  const Share share = shares(order, matrix, 2)[1];
  std::vector<std::int32_t> computed;
  for (const ColourLinks& colour : links_of(share)) {
    computed.insert(computed.end(), colour.first.begin(), colour.first.end());
    computed.insert(computed.end(), colour.rest.begin(), colour.rest.end());
    for (const Link& link : colour.links)
      for (const std::int32_t line : link.out) {
        const std::int32_t group = line / share.order.block_rows;
        CHECK(std::find(colour.first.begin(), colour.first.end(), group) != colour.first.end());
      }
  }
  std::sort(computed.begin(), computed.end());
  std::vector<std::int32_t> own;
  for (std::size_t group = 0; group < share.group.size(); group++)
    if (share.is_own(static_cast<std::int64_t>(group)))
      own.push_back(static_cast<std::int32_t>(group));
  CHECK(computed == own);
}

}  // namespace

int main() {
  const OwnedCsr<std::int32_t> matrix = poisson(kGrid);
  for (const Grid& grid : {kGrid, Grid{.cells = {1, 9, 18}}, Grid{.cells = {5, 1, 1}}})
    rows_of_poisson_are_those_that_are_generated(grid);
  for (const Ordering& order : orderings(matrix)) {
    every_group_is_owned_once_and_each_colour_is_shared_out_evenly(order);
    for (const int ranks : {1, 2, 3, 7}) own_rows_are_those_of_the_whole(order, matrix, ranks);
    for (const int ranks : {2, 3, 7}) what_one_sends_is_what_the_other_takes(order, matrix, ranks);
    own_groups_are_computed_first_or_meanwhile(order, matrix);
  }
  return 0;
}
