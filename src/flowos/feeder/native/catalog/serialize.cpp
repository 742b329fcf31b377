// A catalog as bytes, little-endian where the machine is:
//
//   magic, version, crc32c of all that follows, length of all that follows
//   kind, which columns there are, counts of groups, classes, samples and stamps
//   groups; classes; of samples: group, [offset], [size], [label], [length of the name]; the names;
//   stamps
//
// A column that says the same for all samples is left out.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/crc32c.h"
#include "catalog/catalog.h"

namespace flowos::feed {
namespace {

constexpr std::array<char, 8> magic = {'F', 'l', 'o', 'w', 'C', 'a', 't', '\n'};
constexpr std::uint32_t version = 2;

struct Head {
  std::array<char, 8> magic;
  std::uint32_t version;
  std::uint32_t crc32c;
  std::uint64_t length;
};

struct Counts {
  std::uint32_t kind;
  std::uint32_t columns;
  std::uint64_t groups, classes, samples, stamps;
};

enum Column : std::uint8_t { offsets = 1, sizes = 2, labels = 4, names = 8, all_columns = 15 };

std::uint32_t checksum(std::string_view bytes) { return crc32c(std::as_bytes(std::span(bytes))); }

template <typename T>
void put(std::string& bytes, const T& value) {
  static_assert(std::has_unique_object_representations_v<T>);
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void put_text(std::string& bytes, std::string_view text) {
  put(bytes, static_cast<std::uint32_t>(text.size()));
  bytes += text;
}

void put_texts(std::string& bytes, const std::vector<std::string>& texts) {
  for (const std::string& text : texts) put_text(bytes, text);
}

bool has_zero(std::string_view text) { return text.find('\0') != std::string_view::npos; }

// Bytes from outside: each `take` says whether there were as many.
class Bytes {
 public:
  explicit Bytes(std::string_view bytes) : bytes_(bytes) {}

  template <typename T>
  bool take(T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    if (bytes_.size() < sizeof value) return false;
    bytes_.copy(reinterpret_cast<char*>(&value), sizeof value);
    bytes_.remove_prefix(sizeof value);
    return true;
  }

  bool take_text(std::string_view& text) {
    std::uint32_t length = 0;
    return take(length) && take_text(text, length);
  }

  bool take_text(std::string_view& text, std::uint64_t length) {
    if (bytes_.size() < length) return false;
    text = bytes_.substr(0, length);
    bytes_.remove_prefix(length);
    return true;
  }

  // So many elements, of which each takes so many bytes at least, can follow.
  bool may_hold(std::uint64_t count, std::uint64_t bytes_each) const {
    return count <= bytes_.size() / bytes_each;
  }

  bool is_empty() const { return bytes_.empty(); }

 private:
  std::string_view bytes_;
};

}  // namespace

// The way back from bytes; what it gives is sound, or nothing.
class CatalogReader {
 public:
  explicit CatalogReader(std::string_view bytes) : bytes_(bytes) {}

  std::optional<Catalog> read() {
    if (!bytes_.take(counts_) || counts_.kind > static_cast<std::uint32_t>(Catalog::Kind::named) ||
        counts_.columns > all_columns) {
      return std::nullopt;
    }
    catalog_.kind_ = static_cast<Catalog::Kind>(counts_.kind);
    if (!read_texts(catalog_.groups_, counts_.groups) ||
        !read_texts(catalog_.classes_, counts_.classes) || !read_extents() || !read_labels() ||
        !read_names() || !read_stamps() || !bytes_.is_empty() || !catalog_.is_sound()) {
      return std::nullopt;
    }
    return std::move(catalog_);
  }

 private:
  bool read_texts(std::vector<std::string>& texts, std::uint64_t count) {
    if (!bytes_.may_hold(count, sizeof(std::uint32_t))) return false;
    for (std::uint64_t i = 0; i < count; ++i) {
      std::string_view text;
      if (!bytes_.take_text(text) || has_zero(text)) return false;
      texts.emplace_back(text);
    }
    return true;
  }

  bool read_extents() {
    if (!bytes_.may_hold(counts_.samples, sizeof(std::uint32_t))) return false;
    catalog_.extents_.assign(counts_.samples, {.group = 0, .offset = 0, .size = -1});
    return read_column(&Catalog::Extent::group) &&
           (!has(offsets) || read_column(&Catalog::Extent::offset)) &&
           (!has(sizes) || read_column(&Catalog::Extent::size));
  }

  template <typename T>
  bool read_column(T Catalog::Extent::* column) {
    return std::ranges::all_of(
        catalog_.extents_, [&](Catalog::Extent& extent) { return bytes_.take(extent.*column); });
  }

  bool read_labels() {
    if (!has(labels)) return true;
    if (!bytes_.may_hold(counts_.samples, sizeof(std::int64_t))) return false;
    catalog_.labels_.resize(counts_.samples);
    return std::ranges::all_of(catalog_.labels_,
                               [&](std::int64_t& label) { return bytes_.take(label); });
  }

  bool read_names() {
    if (has(names) == (catalog_.kind_ == Catalog::Kind::arrays)) return false;
    if (!has(names)) return true;
    if (!bytes_.may_hold(counts_.samples, sizeof(std::uint32_t))) return false;
    catalog_.name_ends_.reserve(counts_.samples);
    std::uint64_t end = 0;
    for (std::uint64_t i = 0; i < counts_.samples; ++i) {
      std::uint32_t length = 0;
      if (!bytes_.take(length)) return false;
      end += length;
      catalog_.name_ends_.push_back(end);
    }
    std::string_view text;
    if (!bytes_.take_text(text, end) || has_zero(text)) return false;
    catalog_.names_ = text;
    return true;
  }

  bool read_stamps() {
    constexpr std::uint64_t least = sizeof(std::uint32_t) + 2 * sizeof(std::int64_t) + 1;
    if (!bytes_.may_hold(counts_.stamps, least)) return false;
    for (std::uint64_t i = 0; i < counts_.stamps; ++i) {
      Catalog::Stamp stamp{};
      std::string_view path;
      std::uint8_t settled = 0;
      if (!bytes_.take_text(path) || has_zero(path) || !bytes_.take(stamp.mtime_ns) ||
          !bytes_.take(stamp.size) || !bytes_.take(settled)) {
        return false;
      }
      stamp.path = path;
      stamp.settled = settled != 0;
      catalog_.stamps_.push_back(std::move(stamp));
    }
    return true;
  }

  bool has(Column column) const { return (counts_.columns & column) != 0; }

  Bytes bytes_;
  Counts counts_{};
  Catalog catalog_;
};

std::string Catalog::serialized() const {
  const auto any = [this](auto&& differs) { return std::ranges::any_of(extents_, differs); };
  std::uint32_t columns = 0;
  if (any([](const Extent& e) { return e.offset != 0; })) columns |= offsets;
  if (any([](const Extent& e) { return e.size != -1; })) columns |= sizes;
  if (!labels_.empty()) columns |= labels;
  if (kind_ != Kind::arrays) columns |= names;

  std::string bytes(sizeof(Head), '\0');
  bytes.reserve(sizeof(Head) + extents_.size() * 8 + names_.size() + 4096);
  put(bytes, Counts{.kind = static_cast<std::uint32_t>(kind_),
                    .columns = columns,
                    .groups = groups_.size(),
                    .classes = classes_.size(),
                    .samples = extents_.size(),
                    .stamps = stamps_.size()});
  put_texts(bytes, groups_);
  put_texts(bytes, classes_);
  for (const Extent& extent : extents_) put(bytes, extent.group);
  if ((columns & offsets) != 0) {
    for (const Extent& extent : extents_) put(bytes, extent.offset);
  }
  if ((columns & sizes) != 0) {
    for (const Extent& extent : extents_) put(bytes, extent.size);
  }
  for (const std::int64_t label : labels_) put(bytes, label);
  std::uint64_t start = 0;
  for (const std::uint64_t end : name_ends_) {
    put(bytes, static_cast<std::uint32_t>(end - std::exchange(start, end)));
  }
  bytes += names_;
  for (const Stamp& stamp : stamps_) {
    put_text(bytes, stamp.path);
    put(bytes, stamp.mtime_ns);
    put(bytes, stamp.size);
    put(bytes, static_cast<std::uint8_t>(stamp.settled));
  }

  const std::string_view body = std::string_view(bytes).substr(sizeof(Head));
  const Head head = {
      .magic = magic, .version = version, .crc32c = checksum(body), .length = body.size()};
  std::memcpy(bytes.data(), &head, sizeof head);
  return bytes;
}

std::optional<Catalog> Catalog::parse(std::string_view bytes) {
  Head head{};
  if (!Bytes(bytes).take(head)) return std::nullopt;
  bytes.remove_prefix(sizeof head);
  if (head.magic != magic || head.version != version || head.length != bytes.size() ||
      head.crc32c != checksum(bytes)) {
    return std::nullopt;
  }
  return CatalogReader(bytes).read();
}

}  // namespace flowos::feed
