#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace flowos::feed {

// What a data set holds: its samples in a fixed order, each a piece of a file.
//
// folder: every file below the root, in byte order of its path; groups are its folders, and the
//   group of a sample is its label's name. tar: samples of WebDataset's layout; groups are the
//   shards. records: pieces of equal size of arrays; groups are the arrays.
// 24 bytes and the name per sample, so that ten million of them fit into memory.
class Catalog {
 public:
  struct Extent {
    std::uint32_t group;
    std::uint64_t offset;  // within the file
    std::int64_t size;     // bytes; -1: the whole file, whose size is not known yet
  };

  std::uint64_t count() const { return extents_.size(); }
  const std::vector<std::string>& groups() const { return groups_; }
  const Extent& extent(std::uint64_t sample) const { return extents_[sample]; }
  // How a person calls it: path below the root; in a tar, SHARD:KEY; of an array, ARRAY[NUMBER].
  std::string name(std::uint64_t sample) const;
  // The file to open, relative to the root.
  std::string file(std::uint64_t sample) const;
  // The class of a tar sample as its .cls member says; of a folder, the group's number; else -1.
  std::int64_t label(std::uint64_t sample) const;
  // Of all names, extents' places and groups, not of sizes: two catalogs with the same one hold
  // the same samples in the same order.
  std::uint64_t fingerprint() const;

  // For those that make one.
  std::uint32_t add_group(std::string name);
  void add(Extent extent, std::string_view name, std::int64_t label);

  // Bytes with magic, version, length and crc32c; `parse` takes any bytes, and gives nothing for
  // what is not whole or not ours.
  std::string serialized() const;
  static std::optional<Catalog> parse(std::string_view bytes);

 private:
  std::vector<std::string> groups_;
  std::vector<Extent> extents_;
  std::vector<std::int64_t> labels_;  // empty: as the kind has them
  std::string names_;
  std::vector<std::uint64_t> name_ends_;
};

// How many samples were found so far; others may look while a listing goes on.
using Found = std::atomic<std::uint64_t>;

// Lists in parallel; a folder's entries are not stat'ed. FeedError: no such folder, no samples.
Catalog list_folder(const std::string& root, unsigned threads, Found& found);
// `member`: which member is the sample, such as "jpg"; empty: the first that is no cls, json, txt.
Catalog list_tars(const std::string& root, const std::vector<std::string>& shards,
                  const std::string& member, unsigned threads, Found& found);
// Pieces of `record_bytes` each, after `header_bytes`, of arrays; what is left over is not used.
Catalog list_records(const std::string& root, const std::vector<std::string>& arrays,
                     std::uint64_t header_bytes, std::uint64_t record_bytes);

}  // namespace flowos::feed
