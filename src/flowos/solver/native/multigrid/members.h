#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/at_once.h"
#include "base/for_each.h"
#include "base/storage.h"
#include "multigrid/aggregates.h"

namespace flowos::solve {

// Of each aggregate its rows, in their order, one list after another.
class Members {
 public:
  Members(const Aggregates& aggregates, int threads)
      : starts_(at(aggregates.count) + 1), rows_(aggregates.of.size()) {
    const Raw<std::int32_t>& of = aggregates.of;
    std::vector<std::vector<std::int32_t>> next(at(threads));  // of a part's rows, where they go
    const auto each_row = [&](const auto& work) {
      at_once(threads, [&](int part) {
        const std::size_t past = of.size() * at(part + 1) / at(threads);
        for (std::size_t row = of.size() * at(part) / at(threads); row < past; ++row) {
          work(static_cast<std::int32_t>(row), next[at(part)][at(of[row])]);
        }
      });
    };
    at_once(threads, [&](int part) { next[at(part)].resize(at(aggregates.count)); });
    each_row([](std::int32_t, std::int32_t& count) { ++count; });
    std::int32_t sum = 0;
    for (std::size_t i = 0; i + 1 < starts_.size(); ++i) {
      starts_[i] = sum;
      for (auto& part : next) sum += std::exchange(part[i], sum);
    }
    starts_.back() = sum;
    each_row([&](std::int32_t row, std::int32_t& place) { rows_[at(place++)] = row; });
  }

  std::int64_t count() const { return static_cast<std::int64_t>(starts_.size()) - 1; }
  int size(std::int64_t aggregate) const {
    return starts_[at(aggregate) + 1] - starts_[at(aggregate)];
  }
  std::span<const std::int32_t> of(std::int64_t aggregate) const {
    return {rows_.data() + starts_[at(aggregate)], at(size(aggregate))};
  }
  // Of all aggregates: where its rows begin among all; then their number.
  const std::vector<std::int32_t>& starts() const { return starts_; }
  const Raw<std::int32_t>& rows() const { return rows_; }

 private:
  std::vector<std::int32_t> starts_;
  Raw<std::int32_t> rows_;
};

}  // namespace flowos::solve
