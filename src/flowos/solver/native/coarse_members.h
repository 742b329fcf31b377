#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "at_once.h"
#include "coarse_aggregates.h"
#include "ordering_parts.h"

namespace flowos::solve {

// Of each aggregate its rows, in their order, one list after another.
class Members {
 public:
  Members(const Aggregates& aggregates, int threads)
      : starts_(at(aggregates.count) + 1), rows_(aggregates.of.size()) {
    const std::vector<std::int32_t>& of = aggregates.of;
    const auto first_of = [&](int part) { return of.size() * at(part) / at(threads); };
    std::vector<std::vector<std::int32_t>> next(at(threads));  // of a part's rows, where they go
    at_once(threads, [&](int part) {
      next[at(part)].resize(at(aggregates.count));
      for (std::size_t row = first_of(part); row < first_of(part + 1); ++row) {
        ++next[at(part)][at(of[row])];
      }
    });
    std::int32_t sum = 0;
    for (std::size_t i = 0; i + 1 < starts_.size(); ++i) {
      starts_[i] = sum;
      for (auto& part : next) sum += std::exchange(part[i], sum);
    }
    starts_.back() = sum;
    at_once(threads, [&](int part) {
      for (std::size_t row = first_of(part); row < first_of(part + 1); ++row) {
        rows_[at(next[at(part)][at(of[row])]++)] = static_cast<std::int32_t>(row);
      }
    });
  }

  std::int64_t count() const { return static_cast<std::int64_t>(starts_.size()) - 1; }
  int size(std::int64_t aggregate) const {
    return starts_[at(aggregate) + 1] - starts_[at(aggregate)];
  }
  std::span<const std::int32_t> of(std::int64_t aggregate) const {
    return {rows_.data() + starts_[at(aggregate)], at(size(aggregate))};
  }

 private:
  std::vector<std::int32_t> starts_, rows_;
};

}  // namespace flowos::solve
