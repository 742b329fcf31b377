#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/progress.h"

namespace flowos::feed {

// What a data set holds: its samples in a fixed order, each a piece of a file.
// 32 bytes and the name per sample (8 more where labels are given), so that ten million of them
// fit into memory. Names are bytes, as the file system has them.
class Catalog {
 public:
  enum class Kind : std::uint32_t {
    folder,  // every file below the root, in byte order of its path; groups are the folders, in
             // byte order, by their path below the root ("" is the root itself)
    tars,    // samples of WebDataset's layout; groups are the shards
    arrays,  // records of equal size, one after another; groups are the arrays
    named,   // whatever else has names: they are whole, groups are not part of them
  };

  static constexpr std::int64_t no_label = INT64_MIN;

  struct Extent {
    std::uint32_t group;
    std::uint64_t offset;  // within the file
    std::int64_t size;     // bytes; -1: what the file has from there on, not known yet
  };

  // A folder (size -1) or a file, relative to the root, as it was when it was listed. Of what is
  // named, whoever listed it says by the path what all of it was.
  struct Stamp {
    std::string path;
    std::int64_t mtime_ns;  // since 1970
    std::int64_t size;
    // The mtime was old enough to tell a later change from it: clocks of file systems are coarse.
    bool settled;
  };

  explicit Catalog(Kind kind = Kind::folder) : kind_(kind) {}

  Kind kind() const { return kind_; }
  std::uint64_t count() const { return extents_.size(); }
  const std::vector<std::string>& groups() const { return groups_; }
  const Extent& extent(std::uint64_t sample) const { return extents_[sample]; }
  // How a person calls it: path below the root; in a tar, SHARD:KEY; of an array, ARRAY[NUMBER].
  std::string name(std::uint64_t sample) const;
  // The file to open, relative to the root.
  std::string file(std::uint64_t sample) const;
  // As it was given: no_label where it was not. In a tar the .cls member gives it.
  std::int64_t label(std::uint64_t sample) const {
    return labels_.empty() ? no_label : labels_[sample];
  }
  // Whether any sample was given a label, or something that should have been one.
  bool has_labels() const { return !labels_.empty(); }
  // The names that labels number, in byte order; empty: labels are numbers by themselves.
  const std::vector<std::string>& classes() const { return classes_; }

  // Of each sample: does its name end in a dot and one of these (lower case; its own may be upper)?
  std::vector<std::uint8_t> ends_in(const std::vector<std::string>& endings) const;
  // Some of the samples, in this order. It is as it would have been listed without the others.
  Catalog only(const std::vector<std::uint64_t>& samples) const;

  // Of all names, extents' places and groups, not of sizes: two catalogs with the same one hold
  // the same samples in the same order.
  std::uint64_t fingerprint() const;
  // Of the fingerprint and, but for folders, the stamps, such as the size and time of each tar and
  // array: what was cached under another one is not to be used.
  std::uint64_t cache_key() const;
  // Of a folder, the samples that may be others than those that `before` had, which was listed at
  // listed_ns: in a folder whose time is another one now, the files that were renamed or written
  // since, or all of them where it is another folder. (A file that is written anew under its old
  // name changes no folder, and is not seen without looking at every one of them.)
  // Looks at those that `concerns` names. Throws FeedError if there is no such root.
  std::vector<std::uint64_t> replaced_since(
      const Catalog& before, std::int64_t listed_ns, const std::string& root, unsigned threads,
      const std::function<bool(std::uint64_t)>& concerns) const;

  const std::vector<Stamp>& stamps() const { return stamps_; }
  // Whether all that was listed is as it was: nothing added, removed or renamed in any folder, no
  // shard and no array written. False also where that is unknown: something changed less than
  // two seconds before it was listed, or there are no stamps. Looks at one folder or file at a time
  // per thread.
  bool still_holds(const std::string& root, unsigned threads) const;

  // For those that make one. Records take no name.
  std::uint32_t add_group(std::string name);
  void add(Extent extent, std::string_view name, std::optional<std::int64_t> label = {});
  void set_classes(std::vector<std::string> classes) { classes_ = std::move(classes); }
  void add_stamp(Stamp stamp) { stamps_.push_back(std::move(stamp)); }
  void reserve(std::uint64_t samples, std::uint64_t bytes_of_names);
  // Every extent is of a group that there is, and can be read; records are in order of their
  // groups; every label is of a class that there is, where classes have names. Listings and `parse`
  // give no others.
  bool is_sound() const;

  // Bytes with magic, version, length and crc32c; `parse` takes any bytes, and gives nothing for
  // what is not whole or not ours.
  std::string serialized() const;
  static std::optional<Catalog> parse(std::string_view bytes);

 private:
  friend class CatalogReader;

  std::string_view own_name(std::uint64_t sample) const;

  Kind kind_;
  std::vector<std::string> groups_;
  std::vector<Extent> extents_;
  std::vector<std::int64_t> labels_;  // empty: there are none
  std::vector<std::string> classes_;
  std::string names_;
  std::vector<std::uint64_t> name_ends_;
  std::vector<Stamp> stamps_;
};

// Takes files of a folder below the root as they are found: their names, each ended by a zero.
// Called from any thread.
using FilesFound = std::function<void(std::string_view folder, std::string_view names)>;

// Every file of every folder; hidden ones (".x") left out. A folder's entries are not stat'ed where
// the file system says what they are. Links to files and folders are followed, but not to a folder
// that the link is in. A link that leads nowhere is a sample, which then cannot be read.
// Throws FeedError if the folder does not exist, cannot be listed, or holds no samples.
Catalog list_folder(const std::string& root, unsigned threads, Progress& progress,
                    const FilesFound& files_found = {});

// The samples of the shards, in their order; only headers are read. As WebDataset does: members of
// the same path up to the first dot of the base name, one after the other, are one sample; links,
// hidden files and __meta__ folders are none.
// `member`: which member is the sample, such as "jpg"; empty: the first that is no cls, json, txt.
// A .cls member holds a whole number, or the name of a class: where all are numbers, these are the
// labels. One that is empty, no text or beyond 1 KiB gives none.
// What has no such member is left out. Throws FeedError if a shard is no tar, compressed,
// truncated, damaged, sparse, or holds the member twice for one key; no samples.
Catalog list_tars(const std::string& root, const std::vector<std::string>& shards,
                  const std::string& member, unsigned threads, Progress& progress);

// Pieces of `record_bytes` each, after `header_bytes`, of arrays; what is left over is not used.
// Throws FeedError if an array cannot be read, none holds a whole record, or there are more than
// 10^9 records.
Catalog list_arrays(const std::string& root, const std::vector<std::string>& arrays,
                    std::uint64_t header_bytes, std::uint64_t record_bytes);

}  // namespace flowos::feed
