// Samples of a folder that may be others than they were, though the names are the same.

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/parallel.h"
#include "base/source_file.h"
#include "base/unique_fd.h"
#include "catalog/catalog.h"
#include "catalog/stamp.h"

namespace flowos::feed {
namespace {

// A server's clock may be so far from ours.
constexpr std::int64_t skew_ns = 300'000'000'000;

enum class Change : std::uint8_t {
  none,
  entries,  // files came, went or were renamed: their own times say which
  whole,    // it is another folder, whose files may be older than the listing
};

// Where a bucket is mounted, folders have the time of the mount, and each mount is another one.
bool may_make_up_times(int root) {
  struct statfs system{};
  return ::fstatfs(root, &system) == 0 && system.f_type == FUSE_SUPER_MAGIC;
}

bool stat_at(int root, const std::string& file, int flags, struct stat& state) {
  int done = 0;
  do {
    done = ::fstatat(root, file.c_str(), &state, flags);
  } while (done != 0 && errno == EINTR);
  return done == 0;
}

std::int64_t changed_ns(const struct stat& state) {
  return std::max(nanoseconds(state.st_ctim), nanoseconds(state.st_mtim));
}

// Of a link, both it and where it leads.
bool is_older(int root, const std::string& file, std::int64_t than_ns) {
  struct stat state{};
  if (!stat_at(root, file, AT_SYMLINK_NOFOLLOW, state) || changed_ns(state) >= than_ns)
    return false;
  if (!S_ISLNK(state.st_mode)) return true;
  return stat_at(root, file, 0, state) && changed_ns(state) < than_ns;
}

// What has become of each folder with samples, and how it looked before.
class Folders {
 public:
  Folders(const Catalog& before, const Catalog& now, std::int64_t listed_ns) {
    std::unordered_map<std::string_view, std::int64_t> then;
    for (const Catalog::Stamp& stamp : before.stamps()) then[stamp.path] = stamp.mtime_ns;
    std::unordered_map<std::string_view, std::uint32_t> group_of;
    const auto groups = static_cast<std::uint32_t>(now.groups().size());
    for (std::uint32_t group = 0; group < groups; ++group) group_of[now.groups()[group]] = group;
    changes_.assign(groups, Change::none);
    since_ns_.assign(groups, 0);
    for (const Catalog::Stamp& stamp : now.stamps()) {
      const auto group = group_of.find(stamp.path);
      const auto was = then.find(stamp.path);
      if (group == group_of.end()) continue;
      const bool is_known = was != then.end();
      if (is_known && was->second == stamp.mtime_ns) continue;
      // A folder in which something was renamed since has a time after the listing.
      const bool is_same = is_known && stamp.mtime_ns > listed_ns;
      changes_[group->second] = is_same ? Change::entries : Change::whole;
      const std::int64_t at_least = is_known ? was->second - settling_ns : INT64_MIN;
      since_ns_[group->second] = std::max(at_least, listed_ns - skew_ns);
    }
  }

  Change change(std::uint32_t group) const { return changes_[group]; }
  std::int64_t since_ns(std::uint32_t group) const { return since_ns_[group]; }

 private:
  std::vector<Change> changes_;
  std::vector<std::int64_t> since_ns_;
};

}  // namespace

std::vector<std::uint64_t> Catalog::replaced_since(
    const Catalog& before, std::int64_t listed_ns, const std::string& root, unsigned threads,
    const std::function<bool(std::uint64_t)>& concerns) const {
  std::vector<std::uint64_t> samples;
  if (kind_ != Kind::folder || before.kind_ != Kind::folder) return samples;
  const Folders folders(before, *this, listed_ns);
  for (std::uint64_t i = 0; i < count(); ++i) {
    if (folders.change(extents_[i].group) != Change::none && concerns(i)) samples.push_back(i);
  }
  if (samples.empty()) return samples;
  const Descriptor opened = open_root(root);
  const bool look_at_all = may_make_up_times(opened.get());
  std::vector<std::uint8_t> is_as_it_was(samples.size());
  for_each_in_threads(samples.size(), threads, [&](std::size_t at) {
    const std::uint32_t group = extents_[samples[at]].group;
    if (folders.change(group) == Change::whole && !look_at_all) return;
    is_as_it_was[at] = is_older(opened.get(), file(samples[at]), folders.since_ns(group));
  });
  std::size_t at = 0;
  std::erase_if(samples, [&](std::uint64_t) { return is_as_it_was[at++] != 0; });
  return samples;
}

}  // namespace flowos::feed
