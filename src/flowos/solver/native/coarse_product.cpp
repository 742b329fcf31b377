#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "at_once.h"
#include "coarse_aggregates.h"
#include "coarse_members.h"
#include "matrix.h"
#include "matrix_error.h"
#include "ordering_parts.h"

namespace flowos::solve {

namespace {

// What holds an aggregate together.
struct Inside {
  double sum = 0;  // of |entries| between its rows
  int count = 0;
};

// Some rows of P'AP, and by how many entries each of theirs came to be.
struct Part {
  std::vector<std::int64_t> sizes;
  std::vector<std::int32_t> columns, entries;
  std::vector<double> values;
};

template <class Index>
class Product {
 public:
  Product(const Csr<Index>& matrix, const Aggregates& aggregates, const Members& members)
      : matrix_(matrix), of_(aggregates.of), members_(members), where_(at(aggregates.count), -1) {}

  Inside add_row(std::int64_t aggregate, Part& part) {
    begin_ = part.columns.size();
    Inside inside;
    find(static_cast<std::int32_t>(aggregate), part);  // the diagonal comes first
    for (const std::int64_t row : members_.of(aggregate)) {
      for (Index k = matrix_.starts[row]; k < matrix_.starts[row + 1]; ++k) {
        const std::int32_t to = of_[at(matrix_.columns[k])];
        const std::size_t found = find(to, part);
        part.values[found] += matrix_.values[k];
        ++part.entries[found];
        if (to == aggregate && matrix_.columns[k] != row) {
          inside.sum += std::fabs(matrix_.values[k]);
          ++inside.count;
        }
      }
    }
    for (std::size_t i = begin_; i < part.columns.size(); ++i) where_[at(part.columns[i])] = -1;
    part.sizes.push_back(static_cast<std::int64_t>(part.columns.size() - begin_));
    return inside;
  }

 private:
  std::size_t find(std::int32_t column, Part& part) {
    std::int32_t& known = where_[at(column)];
    if (known < 0) {
      known = static_cast<std::int32_t>(part.columns.size() - begin_);
      part.columns.push_back(column);
      part.values.push_back(0);
      part.entries.push_back(0);
    }
    return begin_ + at(known);
  }

  const Csr<Index>& matrix_;
  const std::vector<std::int32_t>& of_;
  const Members& members_;
  std::vector<std::int32_t> where_;  // of each column its entry in the row that is being made
  std::size_t begin_ = 0;
};

// By how much P makes the tie of two aggregates too stiff. P'AP has the whole difference of their
// values fall over the entries between them, where in truth it falls over those inside as well. In
// a mesh of equal ties that is how many rows an aggregate is long in that direction: two, for
// halved cells. Where the ties inside are stronger than those between, less falls over them.
double stiffness(double size, double other_size, const Inside& inside, const Inside& other_inside,
                 double value, int entries) {
  constexpr double kMost = 4;
  const int count = inside.count + other_inside.count;
  if (count == 0) return 1;
  const double length = std::clamp(std::sqrt(size * other_size) / entries, 1.0, kMost);
  const double between = std::fabs(value) / entries;
  const double within = (inside.sum + other_inside.sum) / count;
  return 1 + (length - 1) * std::min(1.0, between / within);
}

struct Looseness {
  const Members& members;
  const std::vector<Inside>& inside;

  // Rows from `first` on. Row sums stay.
  void loosen(std::int64_t first, Part& part) const {
    std::size_t k = 0;
    for (std::int64_t row = first; row < first + static_cast<std::int64_t>(part.sizes.size());
         ++row) {
      const std::size_t diagonal = k++;
      for (const std::size_t past = diagonal + at(part.sizes[at(row - first)]); k < past; ++k) {
        double& value = part.values[k];
        if (value >= 0) continue;
        const std::int64_t other = part.columns[k];
        const double before = value;
        value /= stiffness(members.size(row), members.size(other), inside[at(row)],
                           inside[at(other)], value, part.entries[k]);
        part.values[diagonal] += before - value;
      }
    }
  }
};

OwnedCsr<std::int32_t> joined(const std::vector<Part>& parts) {
  OwnedCsr<std::int32_t> result;
  std::size_t rows = 0, entries = 0;
  for (const Part& part : parts) {
    rows += part.sizes.size();
    entries += part.columns.size();
  }
  if (entries > at(std::numeric_limits<std::int32_t>::max())) {
    throw MatrixError("The coarse matrix has more than 2^31 entries: solve with coarse=\"none\".");
  }
  result.starts.reserve(rows + 1);
  result.columns.reserve(entries);
  result.values.reserve(entries);
  result.starts.push_back(0);
  for (const Part& part : parts) {
    for (const std::int64_t size : part.sizes) {
      result.starts.push_back(result.starts.back() + static_cast<std::int32_t>(size));
    }
    result.columns.insert(result.columns.end(), part.columns.begin(), part.columns.end());
    result.values.insert(result.values.end(), part.values.begin(), part.values.end());
  }
  return result;
}

}  // namespace

template <class Index>
OwnedCsr<std::int32_t> coarse_matrix(const Csr<Index>& matrix, const Aggregates& aggregates,
                                     const Members& members, bool loosen, int threads) {
  std::vector<Inside> inside(at(aggregates.count));
  const int count = static_cast<int>(std::clamp<std::int64_t>(aggregates.count, 1, threads));
  std::vector<Part> parts(at(count));
  const auto first_of = [&](int part) { return aggregates.count * part / count; };
  at_once(count, [&](int i) {
    Product<Index> product(matrix, aggregates, members);
    for (std::int64_t row = first_of(i); row < first_of(i + 1); ++row) {
      inside[at(row)] = product.add_row(row, parts[at(i)]);
    }
  });
  if (loosen) {
    const Looseness looseness{members, inside};
    at_once(count, [&](int i) { looseness.loosen(first_of(i), parts[at(i)]); });
  }
  return joined(parts);
}

template OwnedCsr<std::int32_t> coarse_matrix(const Csr<std::int32_t>&, const Aggregates&,
                                              const Members&, bool, int);
template OwnedCsr<std::int32_t> coarse_matrix(const Csr<std::int64_t>&, const Aggregates&,
                                              const Members&, bool, int);

}  // namespace flowos::solve
