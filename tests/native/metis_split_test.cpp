// Groups of a graph shared out by METIS: only where that is better than to keep their order.

#include "mpi/metis_split.h"

#include <cstddef>
#include <cstdint>
#include <iostream>
#include <optional>

#include "check.h"
#include "matrix/generate.h"
#include "matrix/matrix.h"
#include "mpi/partition.h"
#include "mpi/share.h"
#include "ordering/ordering.h"

using namespace flowos::solve;

namespace {

// Of each colour's groups half to each; entries that cross are counted from both sides.
void the_cost_of_a_split_is_counted(const Ordering& order, const RowsOf<std::int32_t>& rows) {
  const TouchingGroups<std::int32_t> graph(order, rows);
  const Owners one(static_cast<std::size_t>(order.groups()), 0);
  CHECK(cost_of(one, 2, order, graph).groups == order.groups());
  CHECK(cost_of(one, 2, order, graph).crossing == 0);
  const SplitCost halves = cost_of(split_in_order(order, 2), 2, order, graph);
  CHECK(halves.groups >= order.groups() / 2);
  CHECK(halves.groups <= order.groups() / 2 + order.colours());
  CHECK(halves.crossing > 0);
  CHECK(halves.crossing % 2 == 0);
}

void few_groups_stay_in_their_order(const Ordering& order, const RowsOf<std::int32_t>& rows) {
  CHECK(!split_by_metis(order, rows, static_cast<int>(order.groups())));
}

void what_metis_finds_is_even_and_crosses_less(const Ordering& order,
                                               const RowsOf<std::int32_t>& rows) {
  const TouchingGroups<std::int32_t> graph(order, rows);
  int used = 0;
  for (const int ranks : {2, 3, 4, 8}) {
    const std::optional<Owners> owners = split_by_metis(order, rows, ranks);
    if (!owners) continue;
    used++;
    for (const std::int32_t owner : *owners) CHECK(owner >= 0 && owner < ranks);
    const SplitCost found = cost_of(*owners, ranks, order, graph);
    const SplitCost in_order = cost_of(split_in_order(order, ranks), ranks, order, graph);
    CHECK(found.crossing < in_order.crossing);
    CHECK(static_cast<double>(found.groups) <= 1.1 * static_cast<double>(in_order.groups));
  }
  std::cerr << "METIS was used in " << used << " of 4\n";
}

}  // namespace

int main() {
  const OwnedCsr<std::int32_t> matrix = poisson({.cells = {4, 160, 160}});
  const RowsOf<std::int32_t> rows{matrix.view()};
  const Ordering order = order_graph(matrix.view(), 8, 0, 4);
  the_cost_of_a_split_is_counted(order, rows);
  few_groups_stay_in_their_order(order, rows);
#if __has_include(<metis.h>)
  what_metis_finds_is_even_and_crosses_less(order, rows);
  return 0;
#else
  std::cerr << "without METIS: apt install libmetis-dev\n";
  return 77;  // skipped
#endif
}
