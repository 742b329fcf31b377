#include "cache/index.h"

#include <asm-generic/errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/crc32c.h"
#include "base/errors.h"
#include "base/unique_fd.h"
#include "cache/folder.h"
#include "cache/layout.h"

namespace flowos::feed::cache {
namespace {

std::uint32_t crc_of(const Identity& identity) {
  std::array<std::uint64_t, 2> rest = {identity.samples, identity.fingerprint};
  return crc32c(std::as_bytes(std::span(rest)));
}

// Nothing: it is not whole, not ours, not of this version.
std::optional<Identity> identity_of(int file) {
  struct stat status{};
  Identity identity{};
  if (::fstat(file, &status) != 0 || !S_ISREG(status.st_mode) || status.st_uid != ::geteuid() ||
      ::pread(file, &identity, sizeof identity, 0) != sizeof identity) {
    return std::nullopt;
  }
  if (identity.magic != kMagic || identity.version != kVersion ||
      identity.crc != crc_of(identity) || identity.samples > kMaxSamples ||
      static_cast<std::uint64_t>(status.st_size) != index_bytes(identity.samples)) {
    return std::nullopt;
  }
  return identity;
}

Descriptor open_index(const Folder& folder, bool writable) {
  return open_file(folder, "index", writable ? O_RDWR : O_RDONLY);
}

// Where room cannot be reserved it is taken by writing: a page of a mapping that finds none would
// end the process.
int fill(int file, std::uint64_t bytes) {
  const std::array<std::byte, 1 << 16> zeros{};
  for (std::uint64_t at = 0; at < bytes;) {
    const std::size_t piece = std::min<std::uint64_t>(zeros.size(), bytes - at);
    const ssize_t written = ::pwrite(file, zeros.data(), piece, static_cast<off_t>(at));
    if (written < 0 && errno != EINTR) return errno;
    if (written > 0) at += static_cast<std::uint64_t>(written);
  }
  return 0;
}

int write_new(int file, const Identity& identity) {
  const std::uint64_t bytes = index_bytes(identity.samples);
  int error = reserve(file, bytes);
  if (error == EOPNOTSUPP || error == ENOSYS) error = fill(file, bytes);
  if (error == 0 && ::pwrite(file, &identity, sizeof identity, 0) != sizeof identity) error = EIO;
  return error;
}

}  // namespace

std::optional<Identity> SharedIndex::identity_in(const Folder& folder) {
  const Descriptor file = open_index(folder, false);
  return file ? identity_of(file.get()) : std::nullopt;
}

std::unique_ptr<SharedIndex> SharedIndex::open(const Folder& folder, bool writable) {
  const Descriptor file = open_index(folder, writable);
  if (!file) return nullptr;
  const std::optional<Identity> identity = identity_of(file.get());
  if (!identity) return nullptr;
  auto index = std::make_unique<SharedIndex>(file.get(), *identity, writable);
  return index->mapped() ? std::move(index) : nullptr;
}

std::unique_ptr<SharedIndex> SharedIndex::make(const Folder& folder, std::uint64_t samples,
                                               std::uint64_t fingerprint) {
  if (samples > kMaxSamples) {
    throw FeedError("a cache for " + std::to_string(samples) +
                    " samples is more than there can be");
  }
  Identity identity{kMagic, kVersion, 0, samples, fingerprint};
  identity.crc = crc_of(identity);
  remove_file(folder, "index.new");
  const Descriptor file(::openat(folder.at.get(), "index.new",
                                 O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  int error = file ? write_new(file.get(), identity) : errno;
  if (error == 0 && ::renameat(folder.at.get(), "index.new", folder.at.get(), "index") != 0) {
    error = errno;
  }
  if (error != 0) {
    ::unlinkat(folder.at.get(), "index.new", 0);
    if (error == EISDIR) {
      throw FeedError(folder.path + "/index is not a regular file: remove it");
    }
    const std::string why = "cache folder " + folder.path + " has no room for an index of " +
                            readable(index_bytes(samples)) + ": " + reason(error);
    if (error == ENOSPC || error == EDQUOT) throw NoRoom(why);
    throw FeedError(why);
  }
  auto index = std::make_unique<SharedIndex>(file.get(), identity, true);
  if (!index->mapped()) {
    throw FeedError("cache folder " + folder.path +
                    ": its index cannot be mapped: " + reason(errno));
  }
  return index;
}

}  // namespace flowos::feed::cache
