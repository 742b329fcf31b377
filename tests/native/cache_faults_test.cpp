// A cache whose files were damaged.

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/progress.h"
#include "bytes.h"
#include "cache/cache.h"
#include "cache/layout.h"
#include "cache_tools.h"
#include "check.h"

using namespace cache_tools;
using flowos::feed::Progress;
namespace layout = flowos::feed::cache;

namespace {

constexpr std::uint64_t kPrint = 0xFEEDULL;
constexpr std::uint64_t kSamples = 200;

void fill(const std::string& folder) {
  Cache cache(folder, kPrint, kSamples, small_segments());
  for (std::uint64_t sample = 0; sample < kSamples; ++sample) put(cache, sample);
}

// Reads all; what is refused is fetched again. How many that were.
std::uint64_t repaired(Cache& cache) {
  std::uint64_t refused = 0;
  for (std::uint64_t sample = 0; sample < kSamples; ++sample) {
    const Claim claim = cache.claim(sample);
    if (claim == Claim::ready && reads_right(cache, sample)) continue;
    ++refused;
    CHECK(cache.claim(sample) == Claim::theirs || claim == Claim::ours);
    cache.publish(sample, bytes_of(sample));
    CHECK(cache.claim(sample) == Claim::ready && reads_right(cache, sample));
  }
  return refused;
}

void a_flipped_byte_is_fetched_again_and_counted() {
  const Folder folder;
  fill(folder.cache());
  Cache cache(folder.cache(), kPrint, kSamples, small_segments());
  CHECK(repaired(cache) == 0);
  flip_byte(segments_of(folder.cache()).front(), 10);
  CHECK(repaired(cache) == 1 && cache.damaged() == 1);
  CHECK(repaired(cache) == 0 && cache.damaged() == 1);
}

void verify_forgets_what_is_damaged() {
  const Folder folder;
  fill(folder.cache());
  flip_byte(segments_of(folder.cache()).front(), 10);
  Progress progress;
  CHECK(Cache::verify(folder.cache(), progress) == 1);
  CHECK(Cache::state_of(folder.cache()).cached == kSamples - 1);
  CHECK(Cache::verify(folder.cache(), progress) == 0);
}

void a_truncated_or_missing_segment_is_fetched_again() {
  const Folder folder;
  fill(folder.cache());
  {
    Cache cache(folder.cache(), kPrint, kSamples, small_segments());
    const auto segments = segments_of(folder.cache());
    CHECK(segments.size() >= 2);
    CHECK(::truncate(segments[0].c_str(), 100'000) == 0);
    CHECK(::unlink(segments[1].c_str()) == 0);
    const std::uint64_t lost = repaired(cache);
    CHECK(lost > 0 && lost == cache.damaged());
  }
  CHECK(::unlink(segments_of(folder.cache()).front().c_str()) == 0);
  Cache cache(folder.cache(), kPrint, kSamples, small_segments());
  CHECK(Cache::state_of(folder.cache()).cached < kSamples);  // known at once
  CHECK(repaired(cache) > 0 && cache.damaged() == 0);
}

void an_index_truncated_in_use_ends_nothing_but_the_keeping() {
  const Folder folder;
  fill(folder.cache());
  Cache cache(folder.cache(), kPrint, kSamples, small_segments());
  CHECK(::truncate(folder.file("index").c_str(), 0) == 0);
  for (std::uint64_t sample = 0; sample < kSamples; ++sample) {
    const Claim claim = cache.claim(sample);
    CHECK(claim == Claim::full || claim == Claim::ours);  // ours: by the access that found it out
    if (claim == Claim::ours) cache.publish(sample, bytes_of(sample));
    std::vector<std::byte> bytes(bytes_of(sample).size());
    if (cache.read(sample, bytes)) CHECK(same_bytes(bytes, bytes_of(sample)));
  }
  CHECK(has(cache.complaint(), "its index was truncated"));
  CHECK(cache.part_of(8) >= 1);
}

void a_program_that_handles_bus_errors_itself_is_not_ended() {
  const Folder folder;
  fill(folder.cache());
  Cache cache(folder.cache(), kPrint, kSamples, small_segments());
  struct sigaction action{};
  action.sa_handler = [](int) { ::_exit(3); };
  CHECK(::sigaction(SIGBUS, &action, nullptr) == 0);
  CHECK(::truncate(folder.file("index").c_str(), 0) == 0);
  for (std::uint64_t sample = 0; sample < kSamples; ++sample) {
    std::vector<std::byte> bytes(bytes_of(sample).size());
    if (cache.claim(sample) == Claim::ready) cache.read(sample, bytes);
  }
  CHECK(cache.part_of(8) >= 1);
}

// Each look at the index is preceded by a system call, so that a sample is to take but one.
void what_was_seen_is_read_without_the_index() {
  const Folder folder;
  fill(folder.cache());
  Cache cache(folder.cache(), kPrint, kSamples, small_segments());
  Cache::Seen seen;
  CHECK(cache.claim(7, seen) == Claim::ready);
  CHECK(::truncate(folder.file("index").c_str(), 0) == 0);
  std::vector<std::byte> bytes(seen.length);
  CHECK(cache.read(7, seen, bytes) && same_bytes(bytes, bytes_of(7)));
  CHECK(!cache.find(7) && cache.damaged() == 0);
}

void a_program_that_takes_bus_errors_after_a_claim_is_not_ended_by_the_read() {
  if (kUnderTsan) return;  // during an exchange it holds a lock that our handler waits for
  const Folder folder;
  fill(folder.cache());
  Cache cache(folder.cache(), kPrint, kSamples, small_segments());
  Cache::Seen seen;
  CHECK(cache.claim(7, seen) == Claim::ready);
  struct sigaction action{};
  action.sa_handler = [](int) { ::_exit(3); };
  CHECK(::sigaction(SIGBUS, &action, nullptr) == 0);
  for (const std::string& segment : segments_of(folder.cache())) {
    CHECK(::truncate(segment.c_str(), 0) == 0);
  }
  CHECK(::truncate(folder.file("index").c_str(), 0) == 0);
  std::vector<std::byte> bytes(seen.length);
  CHECK(!cache.read(7, seen, bytes));
}

// Other faults still reach the handler installed before, such as Python's faulthandler.
void a_bus_error_that_is_not_ours_is_handed_on() {
  const Folder folder;
  fill(folder.cache());
  const pid_t child = ::fork();
  CHECK(child >= 0);
  if (child == 0) {
    struct sigaction action{};
    action.sa_handler = [](int) { ::_exit(3); };
    CHECK(::sigaction(SIGBUS, &action, nullptr) == 0);
    Cache cache(folder.cache(), kPrint, kSamples, small_segments());
    CHECK(cache.claim(0) == Claim::ready);
    ::raise(SIGBUS);
    ::_exit(0);
  }
  int status = 0;
  CHECK(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 3);
}

void after_a_restart_all_is_unverified_until_it_was_read() {
  const Folder folder;
  fill(folder.cache());
  pretend_a_restart(folder.cache());
  flip_byte(segments_of(folder.cache()).front(), 10);
  CHECK(Cache::state_of(folder.cache()).unverified == kSamples);
  Cache cache(folder.cache(), kPrint, kSamples, small_segments());
  CHECK(Cache::state_of(folder.cache()).unverified == kSamples);
  CHECK(reads_right(cache, 7) || reads_right(cache, 8));
  CHECK(Cache::state_of(folder.cache()).unverified < kSamples);
  repaired(cache);
  CHECK(cache.damaged() == 1 && Cache::state_of(folder.cache()).unverified == 0);
}

void another_machine_in_it_is_refused() {
  const Folder folder;
  const Cache cache(folder.cache(), kPrint, kSamples, small_segments());
  pretend_a_restart(folder.cache());
  CHECK(has(refusal([&] { Cache(folder.cache(), kPrint, kSamples, small_segments()); }),
            "is in use on another machine"));
}

void a_new_cache_takes_the_place_of(const std::string& folder, std::uint64_t print,
                                    std::uint64_t samples) {
  Cache cache(folder, print, samples, small_segments());
  const auto state = Cache::state_of(folder);
  CHECK(state.samples == samples && state.cached == 0);
  CHECK(segment_bytes_of(folder) == 0);
  put(cache, 3);
  CHECK(reads_right(cache, 3));
}

void what_is_no_index_of_ours_is_replaced() {
  const Folder folder;
  fill(folder.cache());
  a_new_cache_takes_the_place_of(folder.cache(), kPrint + 1, kSamples);
  a_new_cache_takes_the_place_of(folder.cache(), kPrint + 1, kSamples + 1);
  overwrite(folder.file("index"), offsetof(layout::Identity, version), "\x07");
  CHECK(has(refusal([&] { Cache::state_of(folder.cache()); }), "there is no cache"));
  a_new_cache_takes_the_place_of(folder.cache(), kPrint, kSamples);
  flip_byte(folder.file("index"), offsetof(layout::Identity, samples));
  a_new_cache_takes_the_place_of(folder.cache(), kPrint, kSamples);
  CHECK(::truncate(folder.file("index").c_str(), 5000) == 0);
  a_new_cache_takes_the_place_of(folder.cache(), kPrint, kSamples);
  CHECK(::unlink(folder.file("index").c_str()) == 0);
  a_new_cache_takes_the_place_of(folder.cache(), kPrint, kSamples);
  const Cache in_use(folder.cache(), kPrint, kSamples, small_segments());
  CHECK(has(refusal([&] { Cache(folder.cache(), 1, kSamples, small_segments()); }),
            "in use for another data set"));
}

// Everything behind the header, at random: no crash, no wrong bytes, and all is repaired.
void a_garbled_index_gives_no_wrong_bytes() {
  std::mt19937 random(3);
  for (int round = 0; round < 30; ++round) {
    const Folder folder;
    fill(folder.cache());
    const auto bytes = static_cast<off_t>(std::filesystem::file_size(folder.file("index")));
    for (int i = 0; i < 100; ++i) {
      const off_t entries = bytes - static_cast<off_t>(sizeof(layout::Entry) * kSamples);
      const off_t from = round % 2 == 0 ? entries : static_cast<off_t>(sizeof(layout::Identity));
      flip_byte(folder.file("index"), from + static_cast<off_t>(random()) % (bytes - from));
    }
    if (round % 3 == 0) pretend_a_restart(folder.cache());
    Cache cache(folder.cache(), kPrint, kSamples, small_segments());
    repaired(cache);
    CHECK(repaired(cache) == 0);
  }
}

void what_nobody_refers_to_is_removed_at_attaching() {
  const Folder folder;
  fill(folder.cache());
  const std::uint64_t bytes = segment_bytes_of(folder.cache());
  for (const char* name : {"77.seg", "4000000000.seg"}) {
    std::ofstream(folder.file(name)) << std::string(100'000, 'x');
  }
  CHECK(::mkdir(folder.file("notes").c_str(), 0700) == 0);
  std::ofstream(folder.file("07.seg")) << "not ours";
  Cache cache(folder.cache(), kPrint, kSamples, small_segments());
  CHECK(!std::filesystem::exists(folder.file("77.seg")));
  CHECK(!std::filesystem::exists(folder.file("4000000000.seg")));
  CHECK(std::filesystem::exists(folder.file("07.seg")));
  CHECK(segment_bytes_of(folder.cache()) <= bytes + 4096);
  CHECK(repaired(cache) == 0);
}

void room_left_in_open_segments_is_used_by_the_next() {
  const Folder folder;
  Cache::Limits limits = small_segments();
  limits.segment_bytes = 64 << 20;
  for (std::uint64_t run = 0; run < 20; ++run) {
    Cache cache(folder.cache(), kPrint, kSamples, limits);
    for (std::uint64_t i = 0; i < 10; ++i) put(cache, 10 * run + i);
  }
  CHECK(segments_of(folder.cache()).size() == 1);
  Cache cache(folder.cache(), kPrint, kSamples, limits);
  CHECK(repaired(cache) == 0);
}

void folders_that_are_not_for_a_cache_are_refused() {
  const Folder folder;
  const auto refused = [&](const std::string& path) {
    return refusal([&] { Cache(path, kPrint, kSamples, small_segments()); });
  };
  fill(folder.cache());
  std::filesystem::create_symlink(folder.cache(), folder.cache() + ".link");
  CHECK(has(refused(folder.cache() + ".link"), "is a link"));
  CHECK(has(refused(folder.cache() + ".link/"), "is a link"));
  CHECK(has(refused(folder.file("index")), "cannot be opened"));
  CHECK(has(refused("/proc/no/such"), "cannot be made"));
  const std::string other = folder.cache() + ".other";
  std::filesystem::create_directory(other);
  std::ofstream(other + "/1.seg") << "somebody's";
  CHECK(has(refused(other), "holds other things"));
  CHECK(std::filesystem::exists(other + "/1.seg"));
  if (::geteuid() == 0) {
    CHECK(::chown(folder.cache().c_str(), 1, 1) == 0);
    CHECK(has(refused(folder.cache()), "belongs to user 1"));
    CHECK(::chown(folder.cache().c_str(), 0, 0) == 0);
  }
  CHECK(::chmod(folder.cache().c_str(), 0777) == 0);
  CHECK(refused(folder.cache()).empty());
  struct stat status{};
  CHECK(::stat(folder.cache().c_str(), &status) == 0 && (status.st_mode & 0777U) == 0700);
}

}  // namespace

int main() {
  a_flipped_byte_is_fetched_again_and_counted();
  verify_forgets_what_is_damaged();
  a_truncated_or_missing_segment_is_fetched_again();
  an_index_truncated_in_use_ends_nothing_but_the_keeping();
  a_bus_error_that_is_not_ours_is_handed_on();
  a_program_that_handles_bus_errors_itself_is_not_ended();
  what_was_seen_is_read_without_the_index();
  a_program_that_takes_bus_errors_after_a_claim_is_not_ended_by_the_read();
  after_a_restart_all_is_unverified_until_it_was_read();
  another_machine_in_it_is_refused();
  what_is_no_index_of_ours_is_replaced();
  a_garbled_index_gives_no_wrong_bytes();
  what_nobody_refers_to_is_removed_at_attaching();
  room_left_in_open_segments_is_used_by_the_next();
  folders_that_are_not_for_a_cache_are_refused();
}
