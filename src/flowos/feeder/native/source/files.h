#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/unique_fd.h"
#include "catalog/catalog.h"

namespace flowos::feed {

// A sample opened: its size is known, its bytes are not read yet.
class Opened {
 public:
  Opened(std::shared_ptr<const Descriptor> file, std::uint64_t offset, std::uint64_t size);

  std::uint64_t size() const { return size_; }
  // Exactly size() bytes. False with errno: it could not be read; errno 0: it ended early.
  bool read(std::byte* into) const;
  int file() const { return file_->get(); }

 private:
  std::shared_ptr<const Descriptor> file_;
  std::uint64_t offset_;
  std::uint64_t size_;
};

// The samples of a catalog below a root that is mounted here. Safe to use from many threads.
//
// What has changed since it was listed is found where it would give wrong bytes: a size that the
// catalog knows is compared when the file is opened, the size and time of a shard or array also
// after each read. A size that the catalog does not know is taken as it is then.
class Files {
 public:
  // Throws FeedError if there is no such folder.
  Files(std::string root, std::shared_ptr<const Catalog> catalog);

  const std::string& root() const { return root_; }
  ~Files();
  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;

  const Catalog& catalog() const { return *catalog_; }

  // SampleError with the sample's name and what the system said. Files that hold several samples
  // stay open, up to a quarter of the descriptors that this process may have; those beyond are
  // opened for each sample.
  Opened open(std::uint64_t sample) const;
  // Of what `open` gave, all bytes; SampleError. Where the server has forgotten the file, it is
  // opened once more, and must have the same size.
  void read(std::uint64_t sample, const Opened& opened, std::byte* into) const;

 private:
  class Kept;

  Opened open_whole(std::uint64_t sample, const Catalog::Extent& extent) const;
  Opened open_piece(std::uint64_t sample, const Catalog::Extent& extent) const;
  std::shared_ptr<const Descriptor> open_shared(std::uint64_t sample, std::uint32_t group) const;
  // Nothing: all bytes came; else an errno, 0 where the file ended early. SampleError.
  std::optional<int> failure_of(std::uint64_t sample, const Opened& opened, std::byte* into) const;
  // SampleError where a shard or array is not as it was listed; false with errno: it cannot be
  // seen.
  bool look_at(std::uint64_t sample, int file) const;
  [[noreturn]] void refuse(std::uint64_t sample, const std::string& why) const;
  [[noreturn]] void refuse_changed(std::uint64_t sample, const std::string& what) const;
  [[noreturn]] void refuse_unreadable(std::uint64_t sample, int error) const;

  std::string root_;
  std::shared_ptr<const Catalog> catalog_;
  Descriptor folder_;
  std::unique_ptr<Kept> kept_;
};

}  // namespace flowos::feed
