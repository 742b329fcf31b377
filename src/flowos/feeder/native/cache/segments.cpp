#include "cache/segments.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <span>
#include <unordered_map>
#include <utility>

#include "base/crc32c.h"
#include "base/unique_fd.h"
#include "cache/cache.h"
#include "cache/folder.h"
#include "cache/index.h"
#include "cache/layout.h"

namespace flowos::feed::cache {
namespace {

// Read and checked piece by piece, so that a piece is checked while it is in the CPU's cache.
constexpr std::size_t kPiece = 256 << 10;

// Half of what the process may have open: the other half is for sources and for the program.
std::size_t half_of_descriptors() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 128;
  return std::clamp<std::size_t>(limit.rlim_cur / 2, 32, kSegments);
}

off_t begin_of(const SlotRange& range) { return static_cast<off_t>(range.first * kSlotBytes); }

}  // namespace

Segments::Segments(const Folder& folder, const SharedIndex& index, const Cache::Limits& limits,
                   Complaint& complaint, bool writable)
    : folder_(folder),
      index_(index),
      limits_(limits),
      complaint_(complaint),
      writable_(writable),
      max_open_(half_of_descriptors()) {}

// A file's descriptor is held by its users, so that none is closed, and its number given to
// another file, while a sample is read or written.
Segments::File Segments::open(std::uint32_t number) {
  {
    const std::shared_lock lock(files_mutex_);
    const auto found = files_.find(number);
    if (found != files_.end()) return found->second;
  }
  Descriptor file = open_file(folder_, segment_name(number), writable_ ? O_RDWR : O_RDONLY);
  if (!file) return nullptr;
  auto shared = std::make_shared<const Descriptor>(std::move(file));
  keep_open(number, shared);
  return shared;
}

void Segments::keep_open(std::uint32_t number, const File& file) {
  const std::unique_lock lock(files_mutex_);
  if (files_.size() < max_open_) files_.try_emplace(number, file);
}

void Segments::forget_removed() {
  const std::unique_lock lock(files_mutex_);
  for (auto file = files_.begin(); file != files_.end();) {
    const bool there = index_.record(file->first).number.load() == file->first;
    file = there ? std::next(file) : files_.erase(file);
  }
}

std::optional<SlotRange> Segments::keep(std::span<const std::byte> bytes, std::uint32_t lane,
                                        std::uint32_t sharers) {
  for (int tries = 0;; ++tries) {
    const std::optional<SlotRange> range = allocate(bytes.size(), lane, sharers);
    const int error = range ? write(*range, bytes) : 0;
    if (!range || error == 0) return range;
    release(*range);
    if (error == ENOENT) abandon(range->segment);  // it was removed
    if (error == ENOENT && tries < static_cast<int>(kLanes)) continue;
    complaint_.say("cache " + folder_.path + ": a sample could not be written: " + reason(error));
    return std::nullopt;
  }
}

// An errno, 0: done.
int Segments::write(const SlotRange& range, std::span<const std::byte> bytes) {
  if (range.slots == 0) return 0;
  const File file = open(range.segment);
  if (!file) return errno;
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t written = ::pwrite(file->get(), bytes.data() + done, bytes.size() - done,
                                     begin_of(range) + static_cast<off_t>(done));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return written < 0 ? errno : ENOSPC;
    done += static_cast<std::size_t>(written);
  }
  return 0;
}

Segments::Found Segments::read(const SlotRange& range, std::span<std::byte> into,
                               std::uint32_t crc) {
  if (range.slots == 0) return crc == crc32c({}) ? Found::right : Found::wrong;
  const File file = open(range.segment);
  if (!file) return errno == ENOENT ? Found::gone : Found::unreadable;
  std::uint32_t sum = 0;
  for (std::size_t done = 0; done < into.size();) {
    const std::span<std::byte> piece = into.subspan(done, std::min(kPiece, into.size() - done));
    const ssize_t got = ::pread(file->get(), piece.data(), piece.size(),
                                begin_of(range) + static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return Found::gone;
    sum = crc32c(piece.first(static_cast<std::size_t>(got)), sum);
    done += static_cast<std::size_t>(got);
  }
  return sum == crc ? Found::right : Found::wrong;
}

void Segments::release(const SlotRange& range) {
  if (range.slots == 0) return;
  SegmentRecord& record = index_.record(range.segment);
  if (record.number.load() != range.segment) return;
  const File file = open(range.segment);
  if (file && ::fallocate(file->get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, begin_of(range),
                          static_cast<off_t>(range.slots * kSlotBytes)) == 0) {
    give_back(record, range.slots);
  }
  lessen(range.segment, range.slots);
}

}  // namespace flowos::feed::cache
