#include "cache/attach.h"

#include <asm-generic/errno.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/errors.h"
#include "cache/evict.h"
#include "cache/folder.h"
#include "cache/index.h"
#include "cache/layout.h"
#include "cache/process_slots.h"
#include "cache/recover.h"

namespace flowos::feed::cache {
namespace {

// Others attach in milliseconds; making an index for many samples on a slow disk takes seconds.
constexpr std::chrono::seconds kPatience{30};

// Holds the lock of attaching. Null with errno.
std::unique_ptr<Slots> enter(const Folder& folder, std::chrono::milliseconds patience = kPatience) {
  for (int tries = 0; tries < 100; ++tries) {
    std::unique_ptr<Slots> slots = Slots::open(folder);
    if (!slots) return nullptr;
    if (!slots->lock_attaching(patience)) {
      throw FeedError("cache folder " + folder.path + ": another process has been attaching for " +
                      std::to_string(kPatience.count()) + " s: is it stopped?");
    }
    if (slots->current(folder)) return slots;  // else its remover was faster
  }
  errno = ESTALE;
  return nullptr;
}

bool is_for(const SharedIndex& index, std::uint64_t samples, std::uint64_t fingerprint) {
  return index.samples() == samples && index.identity().fingerprint == fingerprint;
}

std::uint64_t bytes_of(const Folder& folder, const std::string& name) {
  struct stat status{};
  const bool known = ::fstatat(folder.at.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
  return known ? static_cast<std::uint64_t>(status.st_blocks) * 512 : 0;
}

std::uint64_t remove_contents(const Folder& folder) {
  std::uint64_t bytes = 0;
  for (const std::uint32_t number : segments_in(folder)) {
    bytes += bytes_of(folder, segment_name(number));
    remove_file(folder, segment_name(number));
  }
  for (const char* name : {"index", "index.new"}) {
    bytes += bytes_of(folder, name);
    ::unlinkat(folder.at.get(), name, 0);  // not truncated: a process may have it mapped
  }
  return bytes;
}

std::string_view boot_of(const SharedIndex& index) {
  const auto& boot = index.header().boot;
  return {boot.data(), ::strnlen(boot.data(), boot.size())};
}

std::unique_ptr<SharedIndex> make_index(const Folder& folder, std::uint64_t samples,
                                        std::uint64_t fingerprint, const std::string& neighbours) {
  for (;;) {
    try {
      return SharedIndex::make(folder, samples, fingerprint);
    } catch (const NoRoom&) {
      if (evict_oldest(neighbours, folder.path) == 0) throw;
    }
  }
}

// Only by a process that is the only one attached.
std::uint64_t kept_in(const SharedIndex& index) {
  std::uint64_t kept = 0;
  for (std::uint64_t sample = 0; sample < index.samples(); ++sample) {
    if (Word::of(index.entry(sample).word.load()).kept()) ++kept;
  }
  return kept;
}

// replaced: samples that were removed, of another list.
std::unique_ptr<SharedIndex> open_exclusive(const Folder& folder, std::uint64_t samples,
                                            std::uint64_t fingerprint,
                                            const std::string& neighbours,
                                            std::uint64_t& replaced) {
  std::unique_ptr<SharedIndex> index = SharedIndex::open(folder, true);
  if (!index || !is_for(*index, samples, fingerprint)) {
    if (index) replaced = kept_in(*index);
    remove_contents(folder);
    index = make_index(folder, samples, fingerprint, neighbours);
  }
  recover(folder, *index, boot_id());
  return index;
}

std::unique_ptr<SharedIndex> open_shared(const Folder& folder, std::uint64_t samples,
                                         std::uint64_t fingerprint) {
  std::unique_ptr<SharedIndex> index = SharedIndex::open(folder, true);
  if (!index || !is_for(*index, samples, fingerprint)) {
    throw FeedError("cache folder " + folder.path +
                    " is in use for another data set, or by another version of FlowOS: give "
                    "another folder, or end the processes that use it");
  }
  if (boot_of(*index) != boot_id()) {
    throw FeedError("cache folder " + folder.path +
                    " is in use on another machine: give a folder on a disk of this one");
  }
  return index;
}

Attached attach_to_read(Folder folder, std::uint64_t samples, std::uint64_t fingerprint,
                        int error) {
  std::unique_ptr<SharedIndex> index = SharedIndex::open(folder, false);
  if (!index || !is_for(*index, samples, fingerprint)) {
    throw FeedError("cache folder " + folder.path + " cannot be written (" + reason(error) +
                    ") and holds no cache of this data set");
  }
  empty_what_cannot_be_right(folder, *index);
  return {std::move(folder), nullptr, std::move(index)};
}

bool can_only_be_read(int error) { return error == EROFS || error == EACCES || error == EPERM; }

}  // namespace

Attached attach(const std::string& path, std::uint64_t samples, std::uint64_t fingerprint,
                const std::string& neighbours) {
  Folder folder = open_folder(path, true);
  std::unique_ptr<Slots> slots = enter(folder);
  if (!slots) {
    const int error = errno;
    if (can_only_be_read(error)) {
      return attach_to_read(std::move(folder), samples, fingerprint, error);
    }
    const bool no_locks = error == ENOSYS || error == EOPNOTSUPP || error == ENOLCK;
    throw FeedError(
        "cache folder " + path + " cannot be used: " + reason(error) +
        (no_locks ? ": its file system has no locks: give a folder on a local disk" : ""));
  }
  std::uint64_t replaced = 0;
  std::unique_ptr<SharedIndex> index =
      slots->alone() ? open_exclusive(folder, samples, fingerprint, neighbours, replaced)
                     : open_shared(folder, samples, fingerprint);
  const std::optional<std::uint32_t> slot = slots->take();
  if (!slot) {
    throw FeedError("cache folder " + path + ": " + std::to_string(kProcesses) +
                    " processes use it, which is as many as can");
  }
  const std::uint32_t generation = ++index->generation(*slot);
  std::atomic<std::uint32_t>& used = index->header().slots_used;
  used = std::max(used.load(), *slot + 1);
  slots->used_now();
  slots->unlock_attaching();
  return {std::move(folder), std::move(slots), std::move(index), static_cast<std::uint16_t>(*slot),
          generation,        replaced};
}

std::uint64_t remove_all(const std::string& path, std::chrono::milliseconds patience) {
  const Folder folder = open_folder(path, false);
  const std::unique_ptr<Slots> slots = enter(folder, patience);
  if (!slots) {
    throw FeedError("cache folder " + path + " cannot be removed: " + reason(errno));
  }
  if (!slots->alone()) {
    throw FeedError("cache folder " + path + " is in use: end the processes that use it first");
  }
  const std::uint64_t bytes = remove_contents(folder);
  ::unlinkat(folder.at.get(), "slots", 0);
  ::rmdir(folder.path.c_str());  // unless it is not empty
  return bytes;
}

}  // namespace flowos::feed::cache
