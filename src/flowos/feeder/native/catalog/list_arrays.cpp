#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/errors.h"
#include "base/source_file.h"
#include "base/unique_fd.h"
#include "catalog/catalog.h"
#include "catalog/stamp.h"

namespace flowos::feed {
namespace {

constexpr std::uint64_t max_records = 1'000'000'000;

}  // namespace

Catalog list_arrays(const std::string& root, const std::vector<std::string>& arrays,
                    std::uint64_t header_bytes, std::uint64_t record_bytes) {
  if (record_bytes == 0 || record_bytes > INT64_MAX) {
    throw FeedError("records of " + std::to_string(record_bytes) + " bytes: give their length");
  }
  const Descriptor folder = open_root(root);
  Catalog catalog(Catalog::Kind::arrays);
  for (const std::string& array : arrays) {
    Catalog::Stamp stamp{};
    open_piece(root, folder.get(), array, stamp);
    const std::uint32_t group = catalog.add_group(array);
    const auto size = static_cast<std::uint64_t>(stamp.size);
    const std::uint64_t records = size < header_bytes ? 0 : (size - header_bytes) / record_bytes;
    if (records > max_records - catalog.count()) {
      throw FeedError(shown_below(root, array) + " makes it more than 1,000,000,000 records of " +
                      std::to_string(record_bytes) + " bytes; make them longer");
    }
    for (std::uint64_t number = 0; number < records; ++number) {
      catalog.add({.group = group,
                   .offset = header_bytes + number * record_bytes,
                   .size = static_cast<std::int64_t>(record_bytes)},
                  {});
    }
    catalog.add_stamp(std::move(stamp));
  }
  if (catalog.count() == 0) {
    throw FeedError("no samples in " + std::to_string(arrays.size()) + " arrays below " +
                    shown(root) + ": none holds " + std::to_string(record_bytes) +
                    " bytes after a header of " + std::to_string(header_bytes));
  }
  return catalog;
}

}  // namespace flowos::feed
