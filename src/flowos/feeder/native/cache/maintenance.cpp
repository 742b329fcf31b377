// What is asked of a cache from outside: its state, a check of all that is in it, its removal.

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/errors.h"
#include "base/progress.h"
#include "base/unique_fd.h"
#include "cache/attach.h"
#include "cache/cache.h"
#include "cache/folder.h"
#include "cache/index.h"
#include "cache/layout.h"
#include "cache/process_slots.h"

namespace flowos::feed {
namespace {

// An entry and a header as they lie in the file.
struct PlainEntry {
  std::uint64_t word, length;
  std::array<std::uint32_t, 4> rest;
};
static_assert(sizeof(PlainEntry) == sizeof(cache::Entry));

constexpr std::size_t kEntriesAtOnce = 1 << 15;

cache::Identity identity_of(const cache::Folder& folder) {
  const std::optional<cache::Identity> identity = cache::SharedIndex::identity_in(folder);
  if (!identity) throw FeedError("there is no cache of this version of FlowOS in " + folder.path);
  return *identity;
}

void count(const PlainEntry& entry, bool restarted, CacheState& state) {
  const cache::Word word = cache::Word::of(entry.word);
  if (!word.kept()) return;
  ++state.cached;
  state.bytes += cache::slots_for(entry.length) * cache::kSlotBytes;
  if (restarted || word.state == cache::State::unverified) ++state.unverified;
}

}  // namespace

// The index is read, not mapped, so that nothing that becomes of the file can do any harm.
CacheState Cache::state_of(const std::string& path) {
  const cache::Folder folder = cache::open_folder(path, false);
  CacheState state;
  state.samples = identity_of(folder).samples;
  const Descriptor file = cache::open_file(folder, "index", O_RDONLY);
  std::array<char, 40> boot{};
  std::uint32_t slots_used = 0;
  if (::pread(file.get(), boot.data(), boot.size(), offsetof(cache::Header, boot)) < 0 ||
      ::pread(file.get(), &slots_used, sizeof slots_used, offsetof(cache::Header, slots_used)) <
          0) {
    throw FeedError("cache " + path + ": its index cannot be read");
  }
  const std::string now = cache::boot_id();
  const bool restarted =
      now.empty() || now != std::string_view(boot.data(), ::strnlen(boot.data(), boot.size()));
  std::vector<PlainEntry> entries(std::min<std::uint64_t>(state.samples, kEntriesAtOnce));
  for (std::uint64_t sample = 0; sample < state.samples;) {
    const ssize_t got = ::pread(file.get(), entries.data(), entries.size() * sizeof(PlainEntry),
                                static_cast<off_t>(cache::index_bytes(sample)));
    const auto whole = static_cast<std::size_t>(std::max<ssize_t>(got, 0)) / sizeof(PlainEntry);
    if (whole == 0) throw FeedError("cache " + path + ": its index cannot be read");
    for (std::size_t i = 0; i < whole; ++i) count(entries[i], restarted, state);
    sample += whole;
  }
  state.processes = cache::Slots::count_in(folder, slots_used);
  return state;
}

std::uint64_t Cache::verify(const std::string& path, Progress& progress) {
  const cache::Identity identity = identity_of(cache::open_folder(path, false));
  Cache cache(path, identity.fingerprint, identity.samples, Limits{});
  std::vector<std::byte> bytes;
  for (std::uint64_t sample = 0; sample < identity.samples; ++sample) {
    if (progress.stopped) throw FeedError("the check of the cache " + path + " was stopped");
    if (const std::optional<Seen> seen = cache.find(sample)) {
      bytes.resize(seen->length);
      if (!cache.read(sample, *seen, bytes)) cache.abandon(sample);
    }
    ++progress.found;
  }
  return cache.damaged();
}

std::uint64_t Cache::clear(const std::string& folder) { return cache::remove_all(folder); }

}  // namespace flowos::feed
