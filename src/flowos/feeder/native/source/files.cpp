#include "source/files.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
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

// The others are for the program, its sockets and its other readers.
constexpr std::uint64_t share_of_descriptors = 4;

std::uint64_t max_kept() {
  struct rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  return limit.rlim_cur / share_of_descriptors;
}

}  // namespace

// The shards and arrays that stay open. In random order none is more likely to come next than
// another, so the first ones stay.
class Files::Kept {
 public:
  explicit Kept(std::size_t groups) : files_(groups), room_(max_kept()) {}

  // Nothing: it is not open.
  std::shared_ptr<const Descriptor> of(std::uint32_t group) const {
    const std::lock_guard lock(mutex_);
    return files_[group];
  }

  void keep(std::uint32_t group, const std::shared_ptr<const Descriptor>& file) {
    const std::lock_guard lock(mutex_);
    if (files_[group] || room_ == 0) return;
    files_[group] = file;
    --room_;
  }

  void forget(std::uint32_t group) {
    const std::lock_guard lock(mutex_);
    if (!files_[group]) return;
    files_[group] = nullptr;
    ++room_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<const Descriptor>> files_;
  std::uint64_t room_;
};

Opened::Opened(std::shared_ptr<const Descriptor> file, std::uint64_t offset, std::uint64_t size)
    : file_(std::move(file)), offset_(offset), size_(size) {}

bool Opened::read(std::byte* into) const { return read_at(file_->get(), into, size_, offset_); }

Files::Files(std::string root, std::shared_ptr<const Catalog> catalog)
    : root_(std::move(root)),
      catalog_(std::move(catalog)),
      folder_(open_root(root_)),
      kept_(std::make_unique<Kept>(catalog_->groups().size())) {}

Files::~Files() = default;

Opened Files::open(std::uint64_t sample) const {
  const Catalog::Extent& extent = catalog_->extent(sample);
  const Catalog::Kind kind = catalog_->kind();
  const bool is_piece = kind == Catalog::Kind::tars || kind == Catalog::Kind::arrays;
  return is_piece ? open_piece(sample, extent) : open_whole(sample, extent);
}

void Files::read(std::uint64_t sample, const Opened& opened, std::byte* into) const {
  std::optional<int> error = failure_of(sample, opened, into);
  if (error && is_stale(*error)) {
    kept_->forget(catalog_->extent(sample).group);
    const Opened again = open(sample);
    if (again.size() != opened.size()) refuse_changed(sample, "its size is another one");
    error = failure_of(sample, again, into);
  }
  if (!error) return;
  if (*error == 0) refuse_changed(sample, "it became shorter while it was read");
  refuse_unreadable(sample, *error);
}

std::optional<int> Files::failure_of(std::uint64_t sample, const Opened& opened,
                                     std::byte* into) const {
  // Looked at after the bytes: what was written before or meanwhile is seen.
  if (opened.read(into) && look_at(sample, opened.file())) return std::nullopt;
  return errno;
}

Opened Files::open_whole(std::uint64_t sample, const Catalog::Extent& extent) const {
  struct stat state{};
  Descriptor file = open_below(folder_.get(), catalog_->file(sample), O_RDONLY);
  if (!file || ::fstat(file.get(), &state) != 0) refuse_unreadable(sample, errno);
  if (!S_ISREG(state.st_mode)) refuse(sample, "is no file; take it out of the data set");
  const auto bytes = static_cast<std::uint64_t>(state.st_size);
  if (bytes < extent.offset || (extent.size >= 0 && state.st_size != extent.size)) {
    refuse_changed(sample,
                   std::to_string(bytes) + " bytes instead of " + std::to_string(extent.size));
  }
  return {std::make_shared<const Descriptor>(std::move(file)), extent.offset,
          bytes - extent.offset};
}

Opened Files::open_piece(std::uint64_t sample, const Catalog::Extent& extent) const {
  auto file = kept_->of(extent.group);
  if (!file) {
    file = open_shared(sample, extent.group);
    kept_->keep(extent.group, file);
  }
  return {std::move(file), extent.offset, static_cast<std::uint64_t>(extent.size)};
}

std::shared_ptr<const Descriptor> Files::open_shared(std::uint64_t sample,
                                                     std::uint32_t group) const {
  const std::string& path = catalog_->groups()[group];
  Descriptor file = open_below(folder_.get(), path, O_RDONLY);
  if (!file || !look_at(sample, file.get())) refuse_unreadable(sample, errno);
  return std::make_shared<const Descriptor>(std::move(file));
}

bool Files::look_at(std::uint64_t sample, int file) const {
  const Catalog::Kind kind = catalog_->kind();
  if (kind != Catalog::Kind::tars && kind != Catalog::Kind::arrays) return true;
  const std::uint32_t group = catalog_->extent(sample).group;
  const std::vector<Catalog::Stamp>& stamps = catalog_->stamps();
  if (group >= stamps.size() || stamps[group].path != catalog_->groups()[group]) return true;
  struct stat state{};
  if (::fstat(file, &state) != 0) return false;
  if (state.st_size != stamps[group].size || nanoseconds(state.st_mtim) != stamps[group].mtime_ns) {
    refuse_changed(sample, shown(stamps[group].path) + " was written");
  }
  return true;
}

void Files::refuse(std::uint64_t sample, const std::string& why) const {
  throw SampleError(shown_below(root_, catalog_->name(sample)) + " " + why);
}

void Files::refuse_changed(std::uint64_t sample, const std::string& what) const {
  refuse(sample, "has changed since the data set was listed (" + what + "); list it again");
}

void Files::refuse_unreadable(std::uint64_t sample, int error) const {
  throw SampleError("cannot read " + shown_below(root_, catalog_->name(sample)) + ": " +
                    why_unreadable(error));
}

}  // namespace flowos::feed
