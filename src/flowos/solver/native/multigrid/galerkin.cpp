#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/at_once.h"
#include "base/for_each.h"
#include "base/storage.h"
#include "matrix/error.h"
#include "matrix/matrix.h"
#include "multigrid/aggregates.h"
#include "multigrid/galerkin_rows.h"
#include "multigrid/members.h"

namespace flowos::solve {

namespace {

// Some rows of P'AP.
struct Part {
  std::int64_t first_row = 0;
  std::vector<std::size_t> sizes;
  Raw<CoarseEntry> entries;
};

// By how much P makes ties of two aggregates too stiff. P'AP has the whole difference of their
// values fall over the entries between them, where in truth it falls over those inside as well. In
// a mesh of equal ties that is how many rows an aggregate is long in that direction: two, for
// halved cells. Where the ties inside are stronger than those between, less falls over them.
class Stiffness {
 public:
  // length: of aggregates; 0: not known.
  Stiffness(const Members& members, const std::vector<Inside>& inside, double length)
      : members_(members), inside_(inside), length_(length) {}

  double of(std::int64_t row, const CoarseEntry& tie) const {
    const Inside &one = inside_[at(row)], &other = inside_[at(tie.column)];
    const int count = one.count + other.count;
    if (count == 0) return 1;
    const double length = length_ > 0 ? length_ : length_along(row, tie);
    const double between = std::fabs(tie.value) / tie.entries;
    const double within = (one.sum + other.sum) / count;
    return 1 + (length - 1) * std::min(1.0, between / within);
  }

 private:
  double length_along(std::int64_t row, const CoarseEntry& tie) const {
    constexpr double kMax = 4;
    const double rows = members_.size(row), other_rows = members_.size(tie.column);
    return std::clamp(std::sqrt(rows * other_rows) / tie.entries, 1.0, kMax);
  }

  const Members& members_;
  const std::vector<Inside>& inside_;
  double length_;
};

// Of all rows. Throws MatrixError if 32 bits cannot count the entries.
std::vector<std::int32_t> starts_of(const std::vector<Part>& parts, std::int64_t rows) {
  std::vector<std::int32_t> starts;
  starts.reserve(at(rows + 1));
  std::size_t sum = 0;
  for (const Part& part : parts) {
    for (const std::size_t size : part.sizes) {
      starts.push_back(static_cast<std::int32_t>(sum));
      sum += size;
    }
  }
  if (sum > at(std::numeric_limits<std::int32_t>::max())) {
    throw MatrixError("The coarse matrix has more than 2^31 entries: solve with coarse=\"none\".");
  }
  starts.push_back(static_cast<std::int32_t>(sum));
  return starts;
}

// loosen(row, entry): by what an entry off the diagonal is divided. Row sums stay.
template <class Loosen>
void write(const Part& part, const Loosen& loosen, OwnedCsr<std::int32_t>& to) {
  const CoarseEntry* entry = part.entries.data();
  std::size_t k = at(to.starts[at(part.first_row)]);
  std::int64_t row = part.first_row;
  for (const std::size_t size : part.sizes) {
    double& diagonal = to.values[k];
    diagonal = entry->value;
    for (std::size_t i = 0; i < size; ++i, ++k, ++entry) {
      to.columns[k] = entry->column;
      if (i == 0) continue;
      to.values[k] = entry->value / loosen(row, *entry);
      diagonal += entry->value - to.values[k];
    }
    ++row;
  }
}

}  // namespace

template <class Index>
OwnedCsr<std::int32_t> coarse_matrix(const Csr<Index>& matrix, const Aggregates& aggregates,
                                     const Members& members, bool loosen, int threads) {
  std::vector<Inside> inside(at(aggregates.count));
  const int count = static_cast<int>(std::clamp<std::int64_t>(aggregates.count, 1, threads));
  std::vector<Part> parts(at(count));
  at_once(count, [&](int i) {
    Part& part = parts[at(i)];
    CoarseRows<Index> rows(matrix, aggregates, members);
    part.first_row = aggregates.count * i / count;
    // Pages that are not written to cost nothing: so as many as there are in the matrix.
    part.entries.reserve(at(matrix.starts[matrix.rows] / count));
    const std::int64_t past = aggregates.count * (i + 1) / count;
    for (std::int64_t row = part.first_row; row < past; ++row) {
      const std::span<const CoarseEntry> entries = rows.row(row);
      inside[at(row)] = rows.inside();
      part.sizes.push_back(entries.size());
      part.entries.insert(part.entries.end(), entries.begin(), entries.end());
    }
  });
  OwnedCsr<std::int32_t> result;
  result.starts = starts_of(parts, aggregates.count);
  result.columns.resize(at(result.starts.back()));
  result.values.resize(at(result.starts.back()));
  const Stiffness stiffness(members, inside, aggregates.length);
  at_once(count, [&](int i) {
    write(
        parts[at(i)],
        [&](std::int64_t row, const CoarseEntry& entry) {
          return loosen && entry.value < 0 ? stiffness.of(row, entry) : 1.0;
        },
        result);
  });
  return result;
}

template OwnedCsr<std::int32_t> coarse_matrix(const Csr<std::int32_t>&, const Aggregates&,
                                              const Members&, bool, int);
template OwnedCsr<std::int32_t> coarse_matrix(const Csr<std::int64_t>&, const Aggregates&,
                                              const Members&, bool, int);

}  // namespace flowos::solve
