// The cache on file systems that are small, read-only, odd, or limited: each mounted for one
// child process in a namespace of its own.

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "cache/cache.h"
#include "cache_tools.h"
#include "check.h"

using namespace cache_tools;

namespace {

constexpr std::uint64_t kPrint = 0xFEEDULL;
constexpr int kSkipped = 77;

void say(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

bool own_mounts() {
  const auto user = std::to_string(::geteuid());
  const auto group = std::to_string(::getegid());
  if (::geteuid() != 0) {
    if (::unshare(CLONE_NEWUSER) != 0) return false;
    say("/proc/self/setgroups", "deny");
    say("/proc/self/uid_map", "0 " + user + " 1");
    say("/proc/self/gid_map", "0 " + group + " 1");
  }
  return ::unshare(CLONE_NEWNS) == 0 &&
         ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
}

[[noreturn]] void skip(const char* what) {
  std::cout << "skipped, " << what << ": " << std::strerror(errno) << "\n" << std::flush;
  ::_exit(kSkipped);
}

void must_mount(const char* type, const std::string& at, const char* options) {
  if (::mount("none", at.c_str(), type, 0, options) != 0) skip(type);
}

// In a child with mounts of its own, at an empty folder.
void in_a_child(const std::function<void(const std::string&)>& test) {
  const Folder folder;
  CHECK(::mkdir(folder.cache().c_str(), 0700) == 0);
  const pid_t child = ::fork();
  CHECK(child >= 0);
  if (child == 0) {
    if (!own_mounts()) skip("no mounts of its own");
    test(folder.cache());
    ::_exit(0);
  }
  int status = 0;
  CHECK(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == kSkipped));
}

// Until it says full; what was published reads back. How many those were.
std::uint64_t fill_up(Cache& cache, std::uint64_t samples) {
  std::uint64_t kept = 0;
  for (std::uint64_t sample = 0; sample < samples; ++sample) {
    const Claim claim = cache.claim(sample);
    CHECK(claim == Claim::ours || claim == Claim::full);
    if (claim == Claim::ours) cache.publish(sample, bytes_of(sample));
  }
  for (std::uint64_t sample = 0; sample < samples; ++sample) {
    if (!cache.has(sample)) continue;
    CHECK(reads_right(cache, sample));
    ++kept;
  }
  return kept;
}

void a_full_disk_is_no_failure(const std::string& at) {
  must_mount("tmpfs", at, "size=8m,mode=0700");
  Cache cache(at + "/cache", kPrint, 2000, small_segments());
  const std::uint64_t kept = fill_up(cache, 2000);
  CHECK(kept > 400 && kept < 2000);
  CHECK(has(cache.complaint(), "its file system has"));
  std::uint64_t full = 0;
  for (std::uint64_t sample = 0; sample < 2000; ++sample) {
    if (cache.has(sample)) continue;
    if (cache.claim(sample) == Claim::full) {
      ++full;
    } else {  // one is tried again after ten seconds
      cache.publish(sample, bytes_of(sample));
    }
  }
  CHECK(full > 0);
}

void the_room_that_is_to_stay_free_stays_free(const std::string& at) {
  must_mount("tmpfs", at, "size=16m,mode=0700");
  Cache::Limits limits = small_segments();
  limits.min_free_bytes = 8 << 20;
  Cache cache(at + "/cache", kPrint, 2000, limits);
  const std::uint64_t kept = fill_up(cache, 2000);
  CHECK(kept > 300);
  CHECK(std::filesystem::space(at).available >= 8 << 20);
}

// A data set's cache below `at`, filled; `hours`: since its last use.
std::string filled(const std::string& at, const std::string& name, std::uint64_t samples,
                   int hours) {
  CHECK(::mkdir((at + "/" + name).c_str(), 0700) == 0);
  const std::string folder = at + "/" + name + "/samples";
  {
    Cache cache(folder, kPrint, samples, small_segments());
    CHECK(fill_up(cache, samples) == samples);
  }
  const std::array<timespec, 2> times = {timespec{::time(nullptr) - 3600L * hours, 0},
                                         timespec{::time(nullptr) - 3600L * hours, 0}};
  CHECK(::utimensat(AT_FDCWD, (folder + "/slots").c_str(), times.data(), 0) == 0);
  return folder;
}

Cache::Limits with_neighbours(const std::string& at) {
  Cache::Limits limits = small_segments();
  limits.neighbours = at;
  return limits;
}

void an_unused_data_set_makes_room_the_oldest_first(const std::string& at) {
  must_mount("tmpfs", at, "size=32m,mode=0700");
  const std::string old = filled(at, "old", 600, 3);
  const std::string older = filled(at, "older", 600, 5);
  const std::string used = filled(at, "used", 600, 9);
  const Cache user(used, kPrint, 600, small_segments());
  CHECK(::mkdir((at + "/new").c_str(), 0700) == 0);
  Cache cache(at + "/new/samples", kPrint, 2000, with_neighbours(at));
  for (std::uint64_t sample = 0; sample < 900; ++sample) put(cache, sample);
  CHECK(!std::filesystem::exists(older));
  CHECK(std::filesystem::exists(old) && Cache::state_of(old).cached == 600);
  CHECK(cache.evicted_bytes() > 5'000'000);
  CHECK(fill_up(cache, 0) == 0 && cache.complaint().empty());
  for (std::uint64_t sample = 900; sample < 1500; ++sample) put(cache, sample);
  CHECK(!std::filesystem::exists(old));
  CHECK(Cache::state_of(used).cached == 600 && Cache::state_of(used).processes == 1);
}

void what_a_cache_may_hold_is_no_reason_to_remove_others(const std::string& at) {
  const std::string old = filled(at, "old", 100, 3);
  CHECK(::mkdir((at + "/new").c_str(), 0700) == 0);
  Cache::Limits limits = with_neighbours(at);
  limits.max_bytes = 2 << 20;
  Cache cache(at + "/new/samples", kPrint, 1000, limits);
  CHECK(fill_up(cache, 1000) < 400);
  CHECK(Cache::state_of(old).cached == 100 && cache.evicted_bytes() == 0);
}

void room_for_an_index_is_made_too(const std::string& at) {
  must_mount("tmpfs", at, "size=16m,mode=0700");
  const std::string old = filled(at, "old", 1000, 3);
  CHECK(::mkdir((at + "/new").c_str(), 0700) == 0);
  const Cache cache(at + "/new/samples", kPrint, 250'000, with_neighbours(at));
  CHECK(!std::filesystem::exists(old));
}

void no_room_for_an_index_is_told(const std::string& at) {
  must_mount("tmpfs", at, "size=1m,mode=0700");
  CHECK(has(refusal([&] { Cache(at + "/cache", kPrint, 2000, small_segments()); }),
            "has no room for an index"));
}

void without_fallocate_it_works(const std::string& at) {
  must_mount("ramfs", at, "mode=0700");
  for (int round = 0; round < 2; ++round) {
    Cache cache(at + "/cache", kPrint, 300, small_segments());
    for (std::uint64_t sample = 0; sample < 300; ++sample) {
      if (round == 0) put(cache, sample);
      CHECK(reads_right(cache, sample));
    }
    for (std::uint64_t sample = 0; round == 1 && sample < 300; ++sample) cache.drop(sample);
    CHECK(cache.complaint().empty());
  }
  CHECK(segments_of(at + "/cache").size() <= 1);
}

void on_an_overlay_it_works(const std::string& at) {
  must_mount("tmpfs", at, "mode=0700");
  for (const char* name : {"/lower", "/upper", "/work", "/all"}) {
    CHECK(::mkdir((at + name).c_str(), 0700) == 0);
  }
  {
    Cache below(at + "/lower/cache", kPrint, 300, small_segments());
    for (std::uint64_t sample = 0; sample < 200; ++sample) put(below, sample);
  }
  const std::string layers =
      "lowerdir=" + at + "/lower,upperdir=" + at + "/upper,workdir=" + at + "/work,userxattr";
  must_mount("overlay", at + "/all", layers.c_str());
  Cache cache(at + "/all/cache", kPrint, 300, small_segments());
  Cache second(at + "/all/cache", kPrint, 300, small_segments());
  for (std::uint64_t sample = 0; sample < 300; ++sample) {
    if (sample >= 200) put(cache, sample);
    CHECK(reads_right(second, sample));
  }
  CHECK(cache.damaged() + second.damaged() == 0 && second.part_of(4) == 2);
}

void a_read_only_cache_is_read(const std::string& at) {
  must_mount("tmpfs", at, "mode=0700");
  {
    Cache cache(at + "/cache", kPrint, 300, small_segments());
    for (std::uint64_t sample = 0; sample < 200; ++sample) put(cache, sample);
    CHECK(cache.claim(250) == Claim::ours);  // and left so
    flip_byte(segments_of(at + "/cache").front(), 10);
  }
  CHECK(::mount("none", at.c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, nullptr) == 0);
  Cache cache(at + "/cache", kPrint, 300, small_segments());
  CHECK(has(cache.complaint(), "can only be read"));
  std::uint64_t right = 0;
  for (std::uint64_t sample = 0; sample < 200; ++sample) {
    CHECK(cache.claim(sample) == Claim::ready);
    if (reads_right(cache, sample)) {
      ++right;
    } else {
      cache.publish(sample, bytes_of(sample));
    }
  }
  CHECK(right == 199 && cache.damaged() == 1);
  CHECK(cache.claim(220) == Claim::full && cache.claim(250) == Claim::full);
  cache.abandon(250);
  cache.drop(3);
  CHECK(cache.claim(3) == Claim::ready && cache.part_of(8) == 8);
  CHECK(Cache::state_of(at + "/cache").cached == 200);
  CHECK(has(refusal([&] { Cache(at + "/cache", 1, 300, small_segments()); }),
            "holds no cache of this data set"));
}

// By a program that sees it writable.
void what_has_moved_in_a_read_only_cache_is_not_damaged(const std::string& at) {
  must_mount("tmpfs", at, "mode=0700");
  Cache writer(at + "/cache", kPrint, 1, small_segments());
  const auto first = bytes_of(0, 5000);
  const auto second = bytes_of(1, 5000);
  CHECK(writer.claim(0) == Claim::ours && writer.publish(0, first));
  const std::string there = at + "/there";
  CHECK(::mkdir(there.c_str(), 0700) == 0);
  if (::mount(at.c_str(), there.c_str(), nullptr, MS_BIND, nullptr) != 0 ||
      ::mount(nullptr, there.c_str(), nullptr, MS_BIND | MS_REMOUNT | MS_RDONLY, nullptr) != 0) {
    skip("a bind mount");
  }
  Cache reader(there + "/cache", kPrint, 1, small_segments());
  CHECK(has(reader.complaint(), "can only be read"));
  Cache::Seen seen;
  CHECK(reader.claim(0, seen) == Claim::ready);
  writer.drop(0);
  CHECK(writer.claim(0) == Claim::ours && writer.publish(0, second));
  std::vector<std::byte> bytes(5000);
  CHECK(reader.read(0, seen, bytes) && bytes == second);
  writer.drop(0);
  CHECK(!reader.read(0, seen, bytes) && reader.damaged() == 0);
}

void a_used_up_quota_is_no_failure(const std::string& at) {
  must_mount("tmpfs", at, "mode=0777,usrquota,usrquota_block_hardlimit=8m");
  std::filesystem::permissions(std::filesystem::path(at).parent_path(),
                               std::filesystem::perms::all);
  if (::setresgid(4321, 4321, 4321) != 0 || ::setresuid(4321, 4321, 4321) != 0) skip("setuid");
  Cache cache(at + "/cache", kPrint, 2000, small_segments());
  const std::uint64_t kept = fill_up(cache, 2000);
  CHECK(kept > 400 && kept < 2000);
  CHECK(has(cache.complaint(), "quota"));
}

void a_limit_of_file_sizes_sends_no_signal(const std::string& at) {
  const rlimit limit{3 << 20, 3 << 20};
  CHECK(::setrlimit(RLIMIT_FSIZE, &limit) == 0);
  Cache::Limits limits = small_segments();
  limits.segment_bytes = 64 << 20;
  Cache cache(at, kPrint, 1000, limits);
  CHECK(fill_up(cache, 1000) == 1000);
  CHECK(has(refusal([&] { Cache(at + "/other", kPrint, 1 << 20, limits); }),
            "has no room for an index"));
}

void more_segments_than_descriptors_are_read(const std::string& at) {
  const rlimit limit{64, 64};
  CHECK(::setrlimit(RLIMIT_NOFILE, &limit) == 0);
  Cache::Limits limits = small_segments();
  limits.segment_bytes = 1 << 16;
  Cache cache(at, kPrint, 1000, limits);
  CHECK(fill_up(cache, 1000) == 1000);
  CHECK(segments_of(at).size() > 100 && cache.damaged() == 0);
}

}  // namespace

int main() {
  in_a_child(a_full_disk_is_no_failure);
  in_a_child(the_room_that_is_to_stay_free_stays_free);
  in_a_child(an_unused_data_set_makes_room_the_oldest_first);
  in_a_child(what_a_cache_may_hold_is_no_reason_to_remove_others);
  in_a_child(room_for_an_index_is_made_too);
  in_a_child(no_room_for_an_index_is_told);
  in_a_child(without_fallocate_it_works);
  in_a_child(on_an_overlay_it_works);
  in_a_child(a_read_only_cache_is_read);
  in_a_child(what_has_moved_in_a_read_only_cache_is_not_damaged);
  in_a_child(a_used_up_quota_is_no_failure);
  in_a_child(a_limit_of_file_sizes_sends_no_signal);
  in_a_child(more_segments_than_descriptors_are_read);
}
