#pragma once

// METIS (Karypis and Kumar: SIAM Journal on Scientific Computing 20, 1998), where its header was
// there when this was compiled and its library is there now (Debian: libmetis-dev). Nothing is
// linked.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "mpi/partition.h"
#include "mpi/share.h"

#if __has_include(<metis.h>)
#include <dlfcn.h>
#include <metis.h>
#endif

namespace flowos::solve {

// Groups that touch, as METIS takes them: of each group the others, and by how many entries.
template <class Index>
class TouchingGroups {
 public:
  TouchingGroups(const Ordering& order, const RowsOf<Index>& rows) {
    const std::int64_t size = std::int64_t{order.block_rows} * order.lanes;
    std::vector<Index> count(static_cast<std::size_t>(order.groups()));
    std::vector<Index> seen;
    starts.push_back(0);
    for (std::int64_t group = 0; group < order.groups(); group++) {
      for (std::int64_t place = group * size; place < (group + 1) * size; place++) {
        const std::int32_t row = order.row[static_cast<std::size_t>(place)];
        if (row < 0) continue;
        rows.each(row, [&](std::int64_t to, double) {
          const std::int64_t other = order.place[static_cast<std::size_t>(to)] / size;
          if (other != group && !count[static_cast<std::size_t>(other)]++)
            seen.push_back(static_cast<Index>(other));
        });
      }
      for (const Index other : seen) {
        others.push_back(other);
        weights.push_back(std::exchange(count[static_cast<std::size_t>(other)], 0));
      }
      seen.clear();
      starts.push_back(static_cast<Index>(others.size()));
    }
  }

  std::vector<Index> starts, others, weights;
};

// How long the slowest ranks take, colour by colour, in groups; and how many entries cross ranks.
struct SplitCost {
  std::int64_t groups = 0, crossing = 0;
};

inline SplitCost cost_of(const Owners& owners, int ranks, const Ordering& order,
                         const TouchingGroups<std::int32_t>& graph) {
  SplitCost cost;
  for (std::size_t colour = 0; colour + 1 < order.colour_starts.size(); colour++) {
    std::vector<std::int64_t> load(static_cast<std::size_t>(ranks));
    for (auto group = order.colour_starts[colour]; group < order.colour_starts[colour + 1]; group++)
      load[static_cast<std::size_t>(owners[static_cast<std::size_t>(group)])]++;
    cost.groups += *std::max_element(load.begin(), load.end());
  }
  for (std::size_t group = 0; group < owners.size(); group++)
    for (auto at = static_cast<std::size_t>(graph.starts[group]);
         at < static_cast<std::size_t>(graph.starts[group + 1]); at++)
      if (owners[group] != owners[static_cast<std::size_t>(graph.others[at])])
        cost.crossing += graph.weights[at];
  return cost;
}

#if __has_include(<metis.h>)

inline constexpr std::int64_t kMinGroupsOfRank = 32;  // METIS prints complaints about less
inline constexpr double kMaxUneven = 1.1;

// So that few entries cross ranks. None where METIS is not to be had, or where what it finds is not
// better than to split the groups in their order.
inline std::optional<Owners> split_by_metis(const Ordering& order, const RowsOf<std::int32_t>& rows,
                                            int ranks) {
  if (order.groups() < kMinGroupsOfRank * ranks) return std::nullopt;
  void* library = dlopen("libmetis.so.5", RTLD_NOW | RTLD_LOCAL);
  auto* split =
      library
          ? reinterpret_cast<decltype(&METIS_PartGraphKway)>(dlsym(library, "METIS_PartGraphKway"))
          : nullptr;
  if (!split || sizeof(idx_t) != sizeof(std::int32_t)) return std::nullopt;
  TouchingGroups<std::int32_t> graph(order, rows);
  auto groups = static_cast<idx_t>(order.groups());
  auto parts = static_cast<idx_t>(ranks);
  idx_t constraints = 1, cut = 0;
  Owners owners(static_cast<std::size_t>(groups));
  if (split(&groups, &constraints, graph.starts.data(), graph.others.data(), nullptr, nullptr,
            graph.weights.data(), &parts, nullptr, nullptr, nullptr, &cut,
            owners.data()) != METIS_OK)
    return std::nullopt;
  const SplitCost found = cost_of(owners, ranks, order, graph);
  const SplitCost in_order = cost_of(split_in_order(order, ranks), ranks, order, graph);
  const bool even =
      static_cast<double>(found.groups) <= kMaxUneven * static_cast<double>(in_order.groups);
  return even && found.crossing < in_order.crossing ? std::optional(std::move(owners))
                                                    : std::nullopt;
}

#else

inline std::optional<Owners> split_by_metis(const Ordering&, const RowsOf<std::int32_t>&, int) {
  return std::nullopt;
}

#endif

}  // namespace flowos::solve
