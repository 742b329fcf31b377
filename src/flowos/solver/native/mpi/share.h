#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/at_once.h"
#include "matrix/grid.h"
#include "matrix/matrix.h"
#include "mpi/partition.h"
#include "ordering/ordering.h"

namespace flowos::solve {

// The rows of a matrix that is here as a whole.
template <class Index>
struct RowsOf {
  Csr<Index> matrix;

  template <class Visit>
  void each(std::int64_t row, const Visit& visit) const {
    for (Index at = matrix.starts[row]; at < matrix.starts[row + 1]; at++)
      visit(static_cast<std::int64_t>(matrix.columns[at]), matrix.values[at]);
  }
};

// The rows that poisson() of generate.h makes, which need not be stored.
struct RowsOfPoisson {
  Grid grid;

  template <class Visit>
  void each(std::int64_t row, const Visit& visit) const {
    const auto [nz, ny, nx] = grid.cells;
    const std::int64_t x = row % nx, y = row / nx % ny, z = row / nx / ny;
    if (z > 0) visit(row - nx * ny, -1.0);
    if (y > 0) visit(row - nx, -1.0);
    if (x > 0) visit(row - 1, -1.0);
    visit(row, 6.0);
    if (x + 1 < nx) visit(row + 1, -1.0);
    if (y + 1 < ny) visit(row + nx, -1.0);
    if (z + 1 < nz) visit(row + nx * ny, -1.0);
  }
};

// What one rank holds: its own groups and those that its rows touch, whole, in the order of the
// whole matrix, so that entries of a row, lanes and colours lie as they do there.
struct Share {
  Ordering order;
  std::vector<std::int64_t> group;  // of each group its number in the whole
  std::vector<std::int32_t> owner;  // and whose it is
  std::vector<std::int64_t> row;    // of each row its number in the whole
  OwnedCsr<std::int32_t> matrix;    // rows of others are empty but for a one on the diagonal
  int rank = 0;

  bool is_own(std::int64_t at_group) const {
    return owner[static_cast<std::size_t>(at_group)] == rank;
  }
  std::int64_t group_of(std::int64_t local_row) const {
    return order.place[static_cast<std::size_t>(local_row)] / order.group_places();
  }
  std::int64_t rows() const { return static_cast<std::int64_t>(row.size()); }

  // work(row) for all that are computed here.
  template <class Work>
  void each_own_row(const Work& work) const {
    for (std::int64_t row = 0; row < rows(); row++)
      if (is_own(group_of(row))) work(static_cast<std::size_t>(row));
  }
};

// Takes a rank's share out of the whole.
template <class Rows>
class Sharing {
 public:
  Sharing(const Ordering& whole, const Owners& owners, int rank, const Rows& rows, int threads)
      : whole_(whole), owners_(owners), rows_(rows), threads_(threads) {
    share_.rank = rank;
  }

  Share build() {
    take_groups(held());
    take_places();
    count_entries();
    fill_entries();
    return std::move(share_);
  }

 private:
  std::int64_t group_places() const { return whole_.group_places(); }
  std::int64_t whole_group(std::int64_t row) const {
    return whole_.place[static_cast<std::size_t>(row)] / group_places();
  }

  // Which groups are ours, or have a row that one of ours touches.
  std::vector<std::uint8_t> held() const {
    std::vector<std::uint8_t> flags(owners_.size());
    const auto mark = [&](std::int64_t group) {
      std::atomic_ref flag(flags[static_cast<std::size_t>(group)]);
      if (!flag.load(std::memory_order_relaxed)) flag.store(1, std::memory_order_relaxed);
    };
    in_parts(static_cast<std::int64_t>(owners_.size()), [&](std::int64_t group) {
      if (owners_[static_cast<std::size_t>(group)] != share_.rank) return;
      mark(group);
      for (std::int64_t place = group * group_places(); place < (group + 1) * group_places();
           place++) {
        const std::int32_t row = whole_.row[static_cast<std::size_t>(place)];
        if (row >= 0) rows_.each(row, [&](std::int64_t to, double) { mark(whole_group(to)); });
      }
    });
    return flags;
  }

  void take_groups(const std::vector<std::uint8_t>& flags) {
    number_.assign(flags.size(), -1);
    share_.order.lanes = whole_.lanes;
    share_.order.block_rows = whole_.block_rows;
    for (std::size_t colour = 0; colour + 1 < whole_.colour_starts.size(); colour++) {
      share_.order.colour_starts.push_back(static_cast<std::int64_t>(share_.group.size()));
      for (auto group = whole_.colour_starts[colour]; group < whole_.colour_starts[colour + 1];
           group++) {
        if (!flags[static_cast<std::size_t>(group)]) continue;
        number_[static_cast<std::size_t>(group)] = static_cast<std::int32_t>(share_.group.size());
        share_.group.push_back(group);
        share_.owner.push_back(owners_[static_cast<std::size_t>(group)]);
      }
    }
    share_.order.colour_starts.push_back(static_cast<std::int64_t>(share_.group.size()));
  }

  // Numbers the rows here in the order of their places.
  void take_places() {
    Ordering& order = share_.order;
    order.row.reserve(share_.group.size() * static_cast<std::size_t>(group_places()));
    for (const std::int64_t group : share_.group) {
      for (std::int64_t place = group * group_places(); place < (group + 1) * group_places();
           place++) {
        const std::int32_t row = whole_.row[static_cast<std::size_t>(place)];
        order.row.push_back(row < 0 ? -1 : static_cast<std::int32_t>(share_.row.size()));
        if (row < 0) continue;
        order.place.push_back(static_cast<std::int32_t>(order.row.size() - 1));
        share_.row.push_back(row);
      }
    }
    order.rows = share_.rows();
  }

  void count_entries() {
    std::vector<std::int32_t>& starts = share_.matrix.starts;
    starts.assign(share_.row.size() + 1, 1);
    starts[0] = 0;
    in_parts(share_.rows(), [&](std::int64_t row) {
      if (!share_.is_own(share_.group_of(row))) return;
      std::int32_t count = 0;
      rows_.each(share_.row[static_cast<std::size_t>(row)], [&](std::int64_t, double) { count++; });
      starts[static_cast<std::size_t>(row) + 1] = count;
    });
    for (std::size_t row = 1; row < starts.size(); row++) starts[row] += starts[row - 1];
  }

  void fill_entries() {
    OwnedCsr<std::int32_t>& matrix = share_.matrix;
    matrix.columns.resize(static_cast<std::size_t>(matrix.starts.back()));
    matrix.values.resize(matrix.columns.size());
    in_parts(share_.rows(), [&](std::int64_t row) {
      auto at = static_cast<std::size_t>(matrix.starts[static_cast<std::size_t>(row)]);
      if (!share_.is_own(share_.group_of(row))) {
        matrix.columns[at] = static_cast<std::int32_t>(row);
        matrix.values[at] = 1;
        return;
      }
      rows_.each(share_.row[static_cast<std::size_t>(row)], [&](std::int64_t to, double value) {
        matrix.columns[at] = row_here(to);
        matrix.values[at++] = value;
      });
    });
  }

  std::int32_t row_here(std::int64_t row) const {
    const std::int64_t place = whole_.place[static_cast<std::size_t>(row)];
    const std::int64_t group = number_[static_cast<std::size_t>(place / group_places())];
    return share_.order
        .row[static_cast<std::size_t>(group * group_places() + place % group_places())];
  }

  template <class Work>
  void in_parts(std::int64_t count, const Work& work) const {
    at_once(threads_, [&](int part) {
      const std::int64_t end = count * (part + 1) / threads_;
      for (std::int64_t i = count * part / threads_; i < end; i++) work(i);
    });
  }

  const Ordering& whole_;
  const Owners& owners_;
  const Rows& rows_;
  int threads_;
  std::vector<std::int32_t> number_;  // of each group its number here; -1: not held
  Share share_;
};

template <class Rows>
Share share_of(const Ordering& whole, const Owners& owners, int rank, const Rows& rows,
               int threads) {
  return Sharing<Rows>(whole, owners, rank, rows, threads).build();
}

}  // namespace flowos::solve
