#include "catalog/catalog.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/parallel.h"
#include "base/source_file.h"
#include "base/unique_fd.h"
#include "catalog/stamp.h"

namespace flowos::feed {
namespace {

// 64 bits of whatever is put into it, eight bytes at a time; not for adversaries.
class Digest {
 public:
  void add(std::uint64_t word) {
    state_ = (state_ ^ word) * 0x9E3779B97F4A7C15U;
    state_ ^= state_ >> 29U;
  }

  void add(std::string_view bytes) {
    add(bytes.size());
    for (; bytes.size() >= sizeof(std::uint64_t); bytes.remove_prefix(sizeof(std::uint64_t))) {
      add_part(bytes.substr(0, sizeof(std::uint64_t)));
    }
    if (!bytes.empty()) add_part(bytes);
  }

  std::uint64_t value() const {
    std::uint64_t mixed = state_ ^ state_ >> 32U;
    mixed *= 0xD6E8FEB86659FD93U;
    return mixed ^ mixed >> 32U;
  }

 private:
  void add_part(std::string_view part) {
    std::uint64_t word = 0;
    std::memcpy(&word, part.data(), part.size());
    add(word);
  }

  std::uint64_t state_ = 0x243F6A8885A308D3U;
};

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool has(std::string_view name, std::string_view ending) {
  if (name.size() <= ending.size() || name[name.size() - ending.size() - 1] != '.') return false;
  return std::ranges::equal(name.substr(name.size() - ending.size()), ending, {}, lower);
}

bool is_as_it_was(int root, const Catalog::Stamp& then) {
  struct stat state{};
  int done = 0;
  do {
    done = ::fstatat(root, then.path.empty() ? "." : then.path.c_str(), &state, 0);
  } while (done != 0 && errno == EINTR);
  if (done != 0) return false;
  const Catalog::Stamp now = stamp_of({}, state);
  return now.mtime_ns == then.mtime_ns && now.size == then.size;
}

}  // namespace

std::uint32_t Catalog::add_group(std::string name) {
  groups_.push_back(std::move(name));
  return static_cast<std::uint32_t>(groups_.size() - 1);
}

void Catalog::add(Extent extent, std::string_view name, std::optional<std::int64_t> label) {
  if (label && labels_.empty()) labels_.assign(extents_.size(), no_label);
  const bool has_labels = label.has_value() || !labels_.empty();
  extents_.push_back(extent);
  if (has_labels) labels_.push_back(label.value_or(no_label));
  if (kind_ == Kind::arrays) return;
  names_ += name;
  name_ends_.push_back(names_.size());
}

void Catalog::reserve(std::uint64_t samples, std::uint64_t bytes_of_names) {
  extents_.reserve(samples);
  if (kind_ == Kind::arrays) return;
  names_.reserve(bytes_of_names);
  name_ends_.reserve(samples);
}

std::string_view Catalog::own_name(std::uint64_t sample) const {
  if (kind_ == Kind::arrays) return {};
  const std::uint64_t start = sample == 0 ? 0 : name_ends_[sample - 1];
  return std::string_view(names_).substr(start, name_ends_[sample] - start);
}

std::string Catalog::name(std::uint64_t sample) const {
  const std::uint32_t group = extents_[sample].group;
  switch (kind_) {
    case Kind::tars:
      return groups_[group] + ":" + std::string(own_name(sample));
    case Kind::arrays: {
      const auto first = std::ranges::lower_bound(extents_, group, {}, &Extent::group);
      const std::uint64_t number = sample - static_cast<std::uint64_t>(first - extents_.begin());
      return groups_[group] + "[" + std::to_string(number) + "]";
    }
    case Kind::folder:
    case Kind::named:
      break;
  }
  return file(sample);
}

std::string Catalog::file(std::uint64_t sample) const {
  const std::string& group = groups_[extents_[sample].group];
  if (kind_ == Kind::tars || kind_ == Kind::arrays) return group;
  std::string path;
  if (kind_ == Kind::folder && !group.empty()) path = group + "/";
  path += own_name(sample);
  return path;
}

std::vector<std::uint8_t> Catalog::ends_in(const std::vector<std::string>& endings) const {
  std::vector<std::uint8_t> of_each(count());
  for (std::uint64_t i = 0; i < count(); ++i) {
    const std::string_view name = own_name(i);
    of_each[i] = std::ranges::any_of(endings, [&](const auto& one) { return has(name, one); });
  }
  return of_each;
}

Catalog Catalog::only(const std::vector<std::uint64_t>& samples) const {
  Catalog some(kind_);
  some.groups_ = groups_;
  some.classes_ = classes_;
  some.stamps_ = stamps_;
  std::uint64_t bytes_of_names = 0;
  for (const std::uint64_t sample : samples) bytes_of_names += own_name(sample).size();
  some.reserve(samples.size(), bytes_of_names);
  for (const std::uint64_t sample : samples) {
    some.add(extents_[sample], own_name(sample),
             has_labels() ? std::optional(labels_[sample]) : std::nullopt);
  }
  return some;
}

bool Catalog::is_sound() const {
  const bool are_pieces = kind_ == Kind::tars || kind_ == Kind::arrays;
  const auto is_right = [&](const Extent& extent) {
    const std::int64_t size = std::max<std::int64_t>(extent.size, 0);
    return extent.group < groups_.size() && extent.size >= (are_pieces ? 0 : -1) &&
           extent.offset <= static_cast<std::uint64_t>(INT64_MAX - size);
  };
  const auto is_class = [&](std::int64_t label) {
    return label == no_label || (label >= 0 && static_cast<std::uint64_t>(label) < classes_.size());
  };
  return std::ranges::all_of(extents_, is_right) &&
         (classes_.empty() || std::ranges::all_of(labels_, is_class)) &&
         (kind_ != Kind::arrays || std::ranges::is_sorted(extents_, {}, &Extent::group));
}

std::uint64_t Catalog::fingerprint() const {
  Digest digest;
  digest.add(static_cast<std::uint64_t>(kind_));
  digest.add(groups_.size());
  for (const std::string& group : groups_) digest.add(group);
  digest.add(extents_.size());
  for (const Extent& extent : extents_) {
    digest.add(extent.group);
    digest.add(extent.offset);
  }
  for (const std::uint64_t end : name_ends_) digest.add(end);
  digest.add(names_);
  return digest.value();
}

std::uint64_t Catalog::cache_key() const {
  Digest digest;
  digest.add(fingerprint());
  // Of a folder they may be those of a mount: another one at each node.
  if (kind_ == Kind::folder) return digest.value();
  for (const Stamp& stamp : stamps_) {
    if (kind_ == Kind::named) digest.add(stamp.path);
    digest.add(static_cast<std::uint64_t>(stamp.size));
    digest.add(static_cast<std::uint64_t>(stamp.mtime_ns));
  }
  return digest.value();
}

bool Catalog::still_holds(const std::string& root, unsigned threads) const {
  if (stamps_.empty() || !std::ranges::all_of(stamps_, &Stamp::settled)) return false;
  const Descriptor folder = open_below(AT_FDCWD, root, O_RDONLY | O_DIRECTORY);
  if (!folder) return false;
  std::atomic<bool> holds = true;
  for_each_in_threads(stamps_.size(), threads, [&](std::size_t i) {
    if (holds && !is_as_it_was(folder.get(), stamps_[i])) holds = false;
  });
  return holds;
}

}  // namespace flowos::feed
