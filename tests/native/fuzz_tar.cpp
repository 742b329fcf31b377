// Any bytes as a tar shard: its members are within it, or an error of one line.

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/errors.h"
#include "base/progress.h"
#include "base/unique_fd.h"
#include "catalog/catalog.h"
#include "check.h"
#include "fuzz.h"
#include "source_tools.h"

using flowos::feed::Catalog;
using flowos::feed::Descriptor;
using flowos::feed::FeedError;
using flowos::feed::Progress;
using source_tools::octal;
using source_tools::padded;
using source_tools::pax_record;
using source_tools::tar_end;
using source_tools::tar_header;
using source_tools::tar_member;

std::vector<std::string> fuzz_seeds() {
  const std::string one = tar_member("a/1.jpg", std::string(700, 'x')) + tar_member("a/1.cls", "7");
  const std::string binary = "\x80" + std::string(10, '\0') + "\x03";
  return {
      one + tar_end(),
      tar_member("././@LongLink", std::string(200, 'n') + ".jpg", 'L') + one,
      tar_member("x", pax_record("path", "b/2.png") + pax_record("size", "3"), 'x') +
          tar_header("cut", octal(0, 11), '0') + padded("abc") + tar_end(),
      tar_header("g.jpg", binary, '0', "ustar  ") + padded("abc") + one + tar_end(),
      tar_member("d/", "", '5') + tar_header("l.jpg", octal(9, 11), '2') + one,
  };
}

namespace {

// The header's sum made right where there may be a header, so that what is behind it is reached.
std::string with_right_sums(std::string archive) {
  for (std::size_t at = 0; at + 512 <= archive.size(); at += 512) {
    if (archive.compare(at + 257, 5, "ustar") == 0) {
      archive.replace(at, 512, source_tools::with_sum(archive.substr(at, 512)));
    }
  }
  return archive;
}

void list(const std::string& archive) {
  const Descriptor file(::memfd_create("shard", MFD_CLOEXEC));
  CHECK(file && ::write(file.get(), archive.data(), archive.size()) ==
                    static_cast<ssize_t>(archive.size()));
  Progress progress;
  try {
    const std::string shard = std::to_string(file.get());
    const Catalog catalog = flowos::feed::list_tars("/proc/self/fd", {shard}, "", 1, progress);
    CHECK(catalog.is_sound() && progress.found == catalog.count());
    for (std::uint64_t i = 0; i < catalog.count(); ++i) {
      const Catalog::Extent& extent = catalog.extent(i);
      CHECK(extent.offset + static_cast<std::uint64_t>(extent.size) <= archive.size());
    }
    CHECK(Catalog::parse(catalog.serialized()).has_value());
  } catch (const FeedError& error) {
    CHECK(std::string(error.what()).find('\n') == std::string::npos);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string archive(reinterpret_cast<const char*>(data), size);
  list(archive);
  list(with_right_sums(archive));
  return 0;
}
