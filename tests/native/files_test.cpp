// Reading samples: whole files and pieces, failures of file systems, and error messages.

#include "source/files.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/errors.h"
#include "base/progress.h"
#include "catalog/catalog.h"
#include "check.h"
#include "source_tools.h"

namespace {

// What the next calls do instead of what was asked of them; 0: nothing.
std::atomic<int> open_fails_with = 0, opens_that_fail = 0;
std::atomic<int> read_fails_with = 0, reads_that_fail = 0;
std::atomic<bool> reads_are_short = false;
constexpr int stale = ESTALE;  // NOLINT(misc-include-cleaner): in cerrno

bool takes_one(std::atomic<int>& left) {
  int now = left;
  while (now > 0 && !left.compare_exchange_weak(now, now - 1)) {
  }
  return now > 0;
}

}  // namespace

// In the place of glibc's: what networks and signals do can be had by no other way.
extern "C" int openat(int folder, const char* path, int flags, ...) {
  if (takes_one(opens_that_fail)) {
    errno = open_fails_with;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_openat, folder, path, flags, 0));
}

extern "C" ssize_t pread(int file, void* into, size_t bytes, off_t offset) {
  if (takes_one(reads_that_fail)) {
    errno = read_fails_with;
    return -1;
  }
  const size_t most = reads_are_short ? std::max<size_t>(bytes / 2, 1) : bytes;
  return static_cast<ssize_t>(::syscall(SYS_pread64, file, into, most, offset));
}

namespace {

using flowos::feed::Catalog;
using flowos::feed::FeedError;
using flowos::feed::Files;
using flowos::feed::Progress;
using flowos::feed::SampleError;
using source_tools::bytes_of;
using source_tools::Folder;
using source_tools::says;
using source_tools::shared;
using source_tools::tar_end;
using source_tools::tar_member;
using source_tools::told;
using Kind = Catalog::Kind;

Files files_of(const Folder& folder) {
  Progress progress;
  return {folder.path(), shared(flowos::feed::list_folder(folder.path(), 2, progress))};
}

Files shards_of(const Folder& folder, const std::vector<std::string>& shards) {
  Progress progress;
  return {folder.path(), shared(flowos::feed::list_tars(folder.path(), shards, "", 2, progress))};
}

std::string refusal(const Files& files, std::uint64_t sample) {
  return told<SampleError>([&] { bytes_of(files, sample); });
}

std::size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

void whole_files_come_as_they_are() {
  const Folder folder;
  folder.write("a/empty", "");
  folder.write("a/\xFF\n", "strange");
  folder.write("b/long", std::string(3 << 20, 'l'));
  const Files files = files_of(folder);
  const std::size_t before = open_descriptors();
  CHECK(bytes_of(files, 0).empty());
  CHECK(bytes_of(files, 1) == "strange");
  CHECK(bytes_of(files, 2) == std::string(3 << 20, 'l'));
  CHECK(open_descriptors() == before);
}

void records_come_from_their_places() {
  const Folder folder;
  folder.write("a.bin", "headAAAABBBBCC");
  const Files files(folder.path(),
                    shared(flowos::feed::list_arrays(folder.path(), {"a.bin"}, 4, 4)));
  CHECK(bytes_of(files, 0) == "AAAA" && bytes_of(files, 1) == "BBBB");
}

void interruptions_and_short_reads_are_not_seen() {
  const Folder folder;
  folder.write("x", "0123456789");
  const Files files = files_of(folder);
  reads_are_short = true;
  open_fails_with = read_fails_with = EINTR;
  opens_that_fail = reads_that_fail = 3;
  CHECK(bytes_of(files, 0) == "0123456789");
  CHECK(opens_that_fail == 0 && reads_that_fail == 0);
  reads_are_short = false;
}

void what_the_server_has_forgotten_is_opened_once_more() {
  const Folder folder;
  folder.write("s.tar", tar_member("1.jpg", "one") + tar_member("2.jpg", "two") + tar_end());
  const Files files = shards_of(folder, {"s.tar"});
  CHECK(bytes_of(files, 0) == "one");
  const std::size_t before = open_descriptors();
  read_fails_with = stale;
  reads_that_fail = 1;
  CHECK(bytes_of(files, 1) == "two");
  reads_that_fail = 2;
  CHECK(says(refusal(files, 1), "s.tar:2: Stale file handle; it was there when"));
  CHECK(open_descriptors() == before);
  const Folder other;
  other.write("x", "whole");
  const Files whole = files_of(other);
  open_fails_with = stale;
  opens_that_fail = 1;
  CHECK(bytes_of(whole, 0) == "whole");
  opens_that_fail = 2;
  CHECK(says(refusal(whole, 0), "x: Stale file handle"));
}

void what_cannot_be_read_is_told_with_the_samples_name_and_a_way_out() {
  const Folder folder;
  folder.write("a/x", "x");
  const Files files = files_of(folder);
  read_fails_with = EIO;
  reads_that_fail = 1;
  CHECK(says(refusal(files, 0), "a/x: Input/output error; the storage has failed"));
  open_fails_with = EACCES;
  opens_that_fail = 1;
  CHECK(says(refusal(files, 0), "a/x: Permission denied; make it readable"));
  open_fails_with = EMFILE;
  opens_that_fail = 1;
  CHECK(says(refusal(files, 0), "a/x: Too many open files; raise the limit"));
  std::filesystem::remove(folder.at("a/x"));
  CHECK(says(refusal(files, 0), "cannot read " + folder.at("a/x") + ": No such file or directory"));
  std::filesystem::create_directory(folder.at("a/x"));
  CHECK(says(refusal(files, 0), "a/x is no file"));
  CHECK(says(told<FeedError>([&] { Files(folder.at("none"), shared(Catalog())); }),
             "none: No such file or directory"));
}

void a_changed_file_is_told_where_its_size_is_known_and_taken_where_not() {
  const Folder folder;
  folder.write("x", "1234");
  Catalog catalog(Kind::named);
  catalog.add_group("");
  catalog.add({.group = 0, .offset = 0, .size = 4}, "x");
  catalog.add({.group = 0, .offset = 0, .size = -1}, "x");
  const Files files(folder.path(), shared(std::move(catalog)));
  CHECK(bytes_of(files, 0) == "1234");
  folder.write("x", "12345");
  CHECK(says(refusal(files, 0),
             "x has changed since the data set was listed (5 bytes instead of 4)"));
  CHECK(bytes_of(files, 1) == "12345");
}

void a_file_that_shrinks_while_it_is_read_is_told() {
  const Folder folder;
  folder.write("x", "1234");
  const Files files = files_of(folder);
  const auto opened = files.open(0);
  folder.write("x", "12");
  std::array<std::byte, 4> into{};
  CHECK(says(told<SampleError>([&] { files.read(0, opened, into.data()); }),
             "x has changed since the data set was listed (it became shorter"));
}

void a_shard_that_was_written_since_it_was_listed_is_told() {
  const Folder folder;
  const std::string archive = tar_member("1.jpg", "one") + tar_end();
  folder.write("same.tar", archive);
  folder.write("longer.tar", archive);
  folder.age(100);
  const Files files = shards_of(folder, {"same.tar", "longer.tar"});
  folder.write("same.tar", archive);
  folder.write("longer.tar", archive + archive);
  Folder::set_age(folder.at("longer.tar"), 100);
  CHECK(says(refusal(files, 0), "same.tar:1 has changed since the data set was listed (same.tar"));
  CHECK(says(refusal(files, 1), "longer.tar:1 has changed"));
}

void a_shard_that_is_written_in_its_place_while_it_is_open_is_told() {
  const Folder folder;
  folder.write("x.tar", tar_member("1.jpg", "one") + tar_end());
  folder.age(100);
  const Files files = shards_of(folder, {"x.tar"});
  CHECK(bytes_of(files, 0) == "one");
  folder.write("x.tar", tar_member("1.jpg", "two") + tar_end());
  CHECK(says(refusal(files, 0), "x.tar:1 has changed since the data set was listed (x.tar"));
}

void more_shards_than_descriptors_are_read_by_many_threads() {
  const Folder folder;
  std::vector<std::string> shards;
  for (int i = 0; i < 100; ++i) {
    shards.push_back(std::to_string(i) + ".tar");
    folder.write(shards.back(), tar_member("1.jpg", shards.back()) + tar_end());
  }
  struct rlimit before{};
  CHECK(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  struct rlimit few = before;
  few.rlim_cur = 64;
  CHECK(::setrlimit(RLIMIT_NOFILE, &few) == 0);
  const std::size_t open_before = open_descriptors();
  {
    const Files files = shards_of(folder, shards);
    std::vector<std::jthread> threads;
    threads.reserve(8);
    for (unsigned t = 0; t < 8; ++t) {
      threads.emplace_back([&, t] {
        for (unsigned i = 0; i < 300; ++i) {
          const unsigned sample = (i * 37 + t * 11) % 100;
          CHECK(bytes_of(files, sample) == shards[sample]);
        }
      });
    }
    threads.clear();
    CHECK(open_descriptors() <= open_before + 1 + 64 / 4);
  }
  CHECK(open_descriptors() == open_before);
  CHECK(::setrlimit(RLIMIT_NOFILE, &before) == 0);
}

}  // namespace

int main() {
  whole_files_come_as_they_are();
  records_come_from_their_places();
  interruptions_and_short_reads_are_not_seen();
  what_the_server_has_forgotten_is_opened_once_more();
  what_cannot_be_read_is_told_with_the_samples_name_and_a_way_out();
  a_changed_file_is_told_where_its_size_is_known_and_taken_where_not();
  a_file_that_shrinks_while_it_is_read_is_told();
  a_shard_that_was_written_since_it_was_listed_is_told();
  a_shard_that_is_written_in_its_place_while_it_is_open_is_told();
  more_shards_than_descriptors_are_read_by_many_threads();
}
