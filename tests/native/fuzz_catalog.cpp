// Any bytes as a stored catalog: refused, or a valid catalog that is serialized to the same bytes
// again.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/crc32c.h"
#include "catalog/catalog.h"
#include "check.h"
#include "fuzz.h"
#include "source_tools.h"

using flowos::feed::Catalog;

std::vector<std::string> fuzz_seeds() {
  std::vector<std::string> seeds;
  for (const auto kind :
       {Catalog::Kind::folder, Catalog::Kind::tars, Catalog::Kind::arrays, Catalog::Kind::named}) {
    Catalog catalog(kind);
    catalog.add_group("");
    catalog.add_group("a/b");
    catalog.add({.group = 0, .offset = 0, .size = 5}, "one", 3);
    catalog.add({.group = 1, .offset = 512, .size = 7}, "\xFFtwo", -1);
    catalog.add_stamp({.path = "a", .mtime_ns = 1, .size = -1, .settled = true});
    seeds.push_back(catalog.serialized());
  }
  seeds.push_back(Catalog().serialized());
  return seeds;
}

namespace {

// See catalog/serialize.cpp: magic, version, crc32c and length of what follows.
constexpr std::size_t crc_at = 12, length_at = 16, head_bytes = 24;

std::string with_right_head(std::string bytes) {
  if (bytes.size() < head_bytes) return bytes;
  bytes.replace(0, crc_at, Catalog().serialized().substr(0, crc_at));
  const auto body = std::as_bytes(std::span(bytes)).subspan(head_bytes);
  const std::uint32_t crc = flowos::feed::crc32c(body);
  const std::uint64_t length = body.size();
  std::memcpy(bytes.data() + crc_at, &crc, sizeof crc);
  std::memcpy(bytes.data() + length_at, &length, sizeof length);
  return bytes;
}

void parse(const std::string& bytes) {
  const std::optional<Catalog> catalog = Catalog::parse(bytes);
  if (!catalog) return;
  CHECK(catalog->is_sound());
  for (std::uint64_t i = 0; i < catalog->count(); ++i) {
    CHECK(catalog->file(i).size() <= bytes.size() && catalog->name(i).size() <= bytes.size() + 22);
    CHECK(catalog->label(i) >= INT64_MIN);
  }
  const std::optional<Catalog> again = Catalog::parse(catalog->serialized());
  CHECK(again.has_value());
  if (!again) return;
  CHECK(again->cache_key() == catalog->cache_key());
  CHECK(source_tools::names_of(*again) == source_tools::names_of(*catalog));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  parse(bytes);
  parse(with_right_head(bytes));
  return 0;
}
