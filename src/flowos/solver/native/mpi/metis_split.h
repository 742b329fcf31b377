#pragma once

// METIS (Karypis and Kumar: SIAM Journal on Scientific Computing 20, 1998), where its header was
// there when this was compiled and its library is there now (Debian: libmetis-dev). Nothing is
// linked.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "links.h"
#include "partition.h"
#include "share.h"

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

#if __has_include(<metis.h>)

// So that few entries cross ranks, and each rank has about the same share of each colour. None
// where METIS is not to be had, or refuses.
inline std::optional<Owners> split_by_metis(const Ordering& order, const RowsOf<std::int32_t>& rows,
                                            int ranks) {
  void* library = dlopen("libmetis.so.5", RTLD_NOW | RTLD_LOCAL);
  auto* split =
      library
          ? reinterpret_cast<decltype(&METIS_PartGraphKway)>(dlsym(library, "METIS_PartGraphKway"))
          : nullptr;
  if (!split || sizeof(idx_t) != sizeof(std::int32_t)) return std::nullopt;
  TouchingGroups<std::int32_t> graph(order, rows);
  auto groups = static_cast<idx_t>(order.groups());
  auto colours = static_cast<idx_t>(order.colours());
  std::vector<idx_t> weights(static_cast<std::size_t>(groups) * static_cast<std::size_t>(colours));
  for (idx_t group = 0; group < groups; group++)
    weights[static_cast<std::size_t>(group * colours + colour_of(order, group))] = 1;
  auto parts = static_cast<idx_t>(ranks);
  idx_t cut = 0;
  Owners owners(static_cast<std::size_t>(groups));
  const int status =
      split(&groups, &colours, graph.starts.data(), graph.others.data(), weights.data(), nullptr,
            graph.weights.data(), &parts, nullptr, nullptr, nullptr, &cut, owners.data());
  return status == METIS_OK ? std::optional(std::move(owners)) : std::nullopt;
}

#else

inline std::optional<Owners> split_by_metis(const Ordering&, const RowsOf<std::int32_t>&, int) {
  return std::nullopt;
}

#endif

}  // namespace flowos::solve
