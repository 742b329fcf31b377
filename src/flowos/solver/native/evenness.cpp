#include "evenness.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "matrix.h"
#include "ordering_parts.h"

namespace flowos::solve {
namespace {

constexpr std::int64_t kRun = 1 << 14;

// A few different values, or too many.
class Few {
 public:
  void add(double value) {
    if (value == last_ || many_) return;
    last_ = value;
    const auto end = values_.begin() + count_;
    if (std::find(values_.begin(), end, value) != end) return;
    many_ = count_ == values_.size();
    if (!many_) values_[count_++] = value;
  }
  void add(const Few& other) {
    many_ = many_ || other.many_;
    for (std::size_t i = 0; i < other.count_; ++i) add(other.values_[i]);
  }
  std::vector<double> values() const {
    if (many_) return {};
    return {values_.begin(), values_.begin() + count_};
  }

 private:
  std::array<double, 4> values_ = {};
  std::size_t count_ = 0;
  bool many_ = false;
  double last_ = 0;  // zeros are no entries
};

struct Seen {
  double least = std::numeric_limits<double>::infinity(), greatest = 0;
  bool negative = true;
  Few values;
};

}  // namespace

template <class Index>
Evenness evenness_of(const Csr<Index>& matrix, int threads) {
  std::vector<Seen> seen(at((matrix.rows + kRun - 1) / kRun));
  for_runs(matrix.rows, kRun, threads, [&](std::int64_t first, std::int64_t end) {
    Seen here;
    for (std::int64_t row = first; row < end; ++row) {
      double diagonal = 0;
      for (Index k = matrix.starts[row]; k < matrix.starts[row + 1]; ++k) {
        const double value = matrix.values[k];
        if (matrix.columns[k] == row) {
          diagonal += value;
        } else {
          here.negative = here.negative && value <= 0;
          here.values.add(value);
        }
      }
      here.least = std::min(here.least, diagonal);
      here.greatest = std::max(here.greatest, diagonal);
    }
    seen[at(first / kRun)] = here;
  });
  Seen all;
  for (const Seen& some : seen) {
    all.least = std::min(all.least, some.least);
    all.greatest = std::max(all.greatest, some.greatest);
    all.negative = all.negative && some.negative;
    all.values.add(some.values);
  }
  return {.least = all.least,
          .greatest = all.greatest,
          .negative = all.negative,
          .values = all.values.values()};
}

template Evenness evenness_of(const Csr<std::int32_t>&, int);
template Evenness evenness_of(const Csr<std::int64_t>&, int);

}  // namespace flowos::solve
