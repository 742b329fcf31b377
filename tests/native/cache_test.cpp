#include "cache/cache.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/progress.h"
#include "bytes.h"
#include "cache_tools.h"
#include "check.h"

using namespace cache_tools;
using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t kPrint = 0xFEEDULL;
constexpr std::uint64_t kPage = 4096;

void a_published_sample_reads_back_here_and_after_attaching_again() {
  const Folder folder;
  const std::vector<std::size_t> sizes = {0, 1, 4095, 4096, 4097, 41'000, 1 << 20, 3'000'001};
  {
    Cache cache(folder.cache(), kPrint, sizes.size(), small_segments());
    for (std::uint64_t sample = 0; sample < sizes.size(); ++sample) {
      CHECK(!cache.has(sample));
      CHECK(cache.claim(sample) == Claim::ours);
      cache.publish(sample, bytes_of(sample, sizes[sample]));
    }
  }
  Cache cache(folder.cache(), kPrint, sizes.size(), small_segments());
  for (std::uint64_t sample = 0; sample < sizes.size(); ++sample) {
    CHECK(cache.claim(sample) == Claim::ready && cache.has(sample));
    CHECK(cache.length(sample) == sizes[sample]);
    std::vector<std::byte> bytes(sizes[sample]);
    CHECK(cache.read(sample, bytes) && same_bytes(bytes, bytes_of(sample, sizes[sample])));
  }
  CHECK(cache.damaged() == 0 && cache.stolen() == 0 && cache.complaint().empty());
}

void a_claim_is_one_and_an_abandoned_one_is_free() {
  const Folder folder;
  Cache one(folder.cache(), kPrint, 10, small_segments());
  Cache other(folder.cache(), kPrint, 10, small_segments());
  CHECK(one.claim(3) == Claim::ours);
  CHECK(one.claim(3) == Claim::theirs && other.claim(3) == Claim::theirs);
  other.abandon(3);  // which is not its own
  other.publish(3, bytes_of(3));
  CHECK(one.claim(3) == Claim::theirs);
  one.abandon(3);
  put(other, 3);
  CHECK(one.claim(3) == Claim::ready && reads_right(one, 3));
  CHECK(has(refusal([&] { one.claim(10); }), "no sample 10 among 10"));
}

void a_waiter_is_woken_when_it_is_published() {
  const Folder folder;
  Cache owner(folder.cache(), kPrint, 1, small_segments());
  Cache waiting(folder.cache(), kPrint, 1, small_segments());
  CHECK(owner.claim(0) == Claim::ours);
  std::atomic<bool> about_to_wait = false;
  std::thread thread([&] {
    CHECK(waiting.claim(0) == Claim::theirs);
    about_to_wait = true;
    waiting.wait(0, 1h);
    CHECK(waiting.claim(0) == Claim::ready);
  });
  while (!about_to_wait) std::this_thread::yield();
  waiting.wait(0, 5ms);
  CHECK(waiting.claim(0) == Claim::theirs);  // the owner lives: nothing is taken from it
  owner.publish(0, bytes_of(0));
  thread.join();
  CHECK(waiting.stolen() == 0);
}

void each_sample_is_fetched_once_by_many_threads() {
  const Folder folder;
  constexpr std::uint64_t samples = 2000;
  std::vector<std::unique_ptr<Cache>> caches;
  caches.reserve(2);
  for (int i = 0; i < 2; ++i) {
    caches.push_back(std::make_unique<Cache>(folder.cache(), kPrint, samples, small_segments()));
  }
  std::atomic<std::uint64_t> fetched = 0;
  std::vector<std::thread> threads;
  threads.reserve(8);
  for (std::uint64_t thread = 0; thread < 8; ++thread) {
    threads.emplace_back([&, thread] {
      Cache& cache = *caches[thread % 2];
      for (std::uint64_t i = 0; i < samples; ++i) {
        const std::uint64_t sample = (i + 37 * thread) % samples;
        Claim claim = cache.claim(sample);
        for (; claim == Claim::theirs; claim = cache.claim(sample)) cache.wait(sample, 10s);
        if (claim == Claim::ours) {
          ++fetched;
          cache.publish(sample, bytes_of(sample));
        }
        CHECK(reads_right(cache, sample));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(fetched == samples);
}

// What it holds, as several that fill it find no more room.
std::uint64_t filled(const std::string& folder, std::uint64_t max_bytes, int processes) {
  constexpr std::uint64_t samples = 4000;
  std::vector<std::unique_ptr<Cache>> caches;
  caches.reserve(4);
  for (int i = 0; i < processes; ++i) {
    caches.push_back(std::make_unique<Cache>(folder, kPrint, samples, small_segments(max_bytes)));
  }
  std::vector<bool> full(caches.size());
  for (std::uint64_t sample = 0; sample < samples; ++sample) {
    const std::size_t turn = sample % caches.size();
    const Claim claim = caches[turn]->claim(sample);
    full[turn] = full[turn] || claim == Claim::full;
    if (claim == Claim::ours) caches[turn]->publish(sample, bytes_of(sample));
    CHECK(claim == Claim::ours || claim == Claim::full);
  }
  for (std::size_t i = 0; i < full.size(); ++i) {
    CHECK(full[i] && has(caches[i]->complaint(), "that it may take"));
  }
  CHECK(segment_bytes_of(folder) <= max_bytes);
  return Cache::state_of(folder).bytes;
}

void a_cache_smaller_than_the_data_is_filled_and_then_says_full() {
  constexpr std::uint64_t most = 16 << 20;
  for (const int processes : {1, 4}) {
    const Folder folder;
    CHECK(filled(folder.cache(), most, processes) >= most / 100 * 99);
    Cache cache(folder.cache(), kPrint, 4000, small_segments(most));
    for (std::uint64_t sample = 0; sample < 4000; ++sample) {
      CHECK(!cache.has(sample) || reads_right(cache, sample));
    }
  }
}

void what_is_dropped_makes_room() {
  const Folder folder;
  Cache cache(folder.cache(), kPrint, 4000, small_segments(8 << 20));
  std::uint64_t sample = 0;
  Claim claim = cache.claim(sample);
  for (; claim == Claim::ours; claim = cache.claim(++sample)) {
    cache.publish(sample, bytes_of(sample));
  }
  CHECK(claim == Claim::full);
  for (std::uint64_t old = 0; old < sample; ++old) cache.drop(old);
  CHECK(Cache::state_of(folder.cache()).cached == 0);
  CHECK(segment_bytes_of(folder.cache()) < 1 << 20);  // of the lane that is open
  for (int round = 0; round < 20; ++round) {          // many times what there is room for
    const std::uint64_t first = round % 2 == 0 ? 0 : 200;
    for (std::uint64_t next = first; next < first + 200; ++next) put(cache, next);
    for (std::uint64_t old = first; old < first + 200; ++old) {
      CHECK(reads_right(cache, old));
      cache.drop(old);
    }
  }
  CHECK(segment_bytes_of(folder.cache()) <= 8 << 20);
}

void a_small_data_set_takes_little_room_and_a_large_one_few_segments() {
  const Folder folder;
  Cache cache(folder.cache(), kPrint, 4000, Cache::Limits{.min_free_bytes = 0});
  for (std::uint64_t sample = 0; sample < 10; ++sample) put(cache, sample);
  CHECK(segment_bytes_of(folder.cache()) == 4 << 20);
  for (std::uint64_t sample = 10; sample < 4000; ++sample) put(cache, sample);
  const std::uint64_t bytes = Cache::state_of(folder.cache()).bytes;
  CHECK(bytes > 16 << 20);
  CHECK(segment_bytes_of(folder.cache()) <= 2 * bytes);
  CHECK(segments_of(folder.cache()).size() < 10);
}

// Every second sample by what was seen before.
bool read_either_way(Cache& cache, std::uint64_t sample, std::vector<std::byte>& bytes) {
  const auto seen = sample % 2 == 0 ? cache.find(sample) : std::nullopt;
  return seen ? cache.read(sample, *seen, bytes) : cache.read(sample, bytes);
}

void a_reader_never_sees_other_bytes_while_another_drops() {
  const Folder folder;
  Cache cache(folder.cache(), kPrint, 8, small_segments(8 << 20));
  for (std::uint64_t sample = 0; sample < 8; ++sample) put(cache, sample);
  std::atomic<bool> done = false;
  std::thread dropping([&] {
    for (int i = 0; i < 3000; ++i) {
      const std::uint64_t sample = static_cast<std::uint64_t>(i) % 8;
      cache.drop(sample);
      if (cache.claim(sample) == Claim::ours) cache.publish(sample, bytes_of(sample));
    }
    done = true;
  });
  while (!done) {
    for (std::uint64_t sample = 0; sample < 8; ++sample) {
      std::vector<std::byte> bytes(bytes_of(sample).size());
      if (read_either_way(cache, sample, bytes)) {
        CHECK(same_bytes(bytes, bytes_of(sample)));
      } else {
        cache.publish(sample, bytes_of(sample));  // it was dropped, and is ours
      }
    }
  }
  dropping.join();
  CHECK(cache.damaged() == 0);
}

void what_was_seen_and_has_moved_meanwhile_is_read_where_it_is_now() {
  const Folder folder;
  Cache cache(folder.cache(), kPrint, 2, small_segments());
  const auto first = bytes_of(0, 5000);
  const auto second = bytes_of(1, 5000);
  std::vector<std::byte> bytes(5000);
  CHECK(!cache.find(0) && cache.claim(0) == Claim::ours);
  cache.publish(0, first);
  Cache::Seen seen;
  CHECK(cache.claim(0, seen) == Claim::ready && seen.length == 5000);
  cache.drop(0);
  CHECK(!cache.find(0) && cache.claim(0) == Claim::ours);
  cache.publish(0, second);
  CHECK(cache.read(0, seen, bytes) && bytes == second);
  cache.drop(0);
  CHECK(!cache.read(0, seen, bytes) && cache.damaged() == 0);
  CHECK(cache.publish(0, first));  // it was ours
  CHECK(cache.claim(0, seen) == Claim::ready);
  CHECK(cache.read(0, seen, bytes) && bytes == first);
}

void processes_share_the_reads_of_the_source_equally() {
  const Folder folder;
  Cache one(folder.cache(), kPrint, 10, small_segments());
  CHECK(one.part_of(256) == 256);
  {
    const Cache second(folder.cache(), kPrint, 10, small_segments());
    const Cache third(folder.cache(), kPrint, 10, small_segments());
    const Cache fourth(folder.cache(), kPrint, 10, small_segments());
    CHECK(fourth.part_of(256) == 64 && fourth.part_of(3) == 1);
    CHECK(Cache::state_of(folder.cache()).processes == 4);
    std::this_thread::sleep_for(300ms);
    CHECK(one.part_of(256) == 64);
  }
  std::this_thread::sleep_for(300ms);
  CHECK(one.part_of(256) == 256);
}

void its_state_is_told_and_it_is_removed_whole() {
  const Folder folder;
  CHECK(has(refusal([&] { Cache::state_of(folder.cache()); }), "cannot be opened"));
  {
    Cache cache(folder.cache(), kPrint, 100, small_segments());
    for (std::uint64_t sample = 0; sample < 30; ++sample) put(cache, sample);
    const auto state = Cache::state_of(folder.cache());
    CHECK(state.samples == 100 && state.cached == 30 && state.unverified == 0);
    CHECK(state.processes == 1 && state.bytes > 30 * kPage && state.bytes % kPage == 0);
    CHECK(has(refusal([&] { Cache::clear(folder.cache()); }), "is in use"));
  }
  CHECK(Cache::state_of(folder.cache()).processes == 0);
  flowos::feed::Progress progress;
  CHECK(Cache::verify(folder.cache(), progress) == 0 && progress.found == 100);
  progress.stopped = true;
  CHECK(has(refusal([&] { Cache::verify(folder.cache(), progress); }), "was stopped"));
  CHECK(Cache::clear(folder.cache()) > 30 * kPage);
  CHECK(!std::filesystem::exists(folder.cache()));
}

// What `in_child` says, as its exit status.
int in_a_fork(const std::function<bool()>& in_child) {
  const auto child = ::fork();
  CHECK(child >= 0);
  if (child == 0) ::_exit(in_child() ? 0 : 1);
  int status = 0;
  CHECK(::waitpid(child, &status, 0) == child);
  return status;
}

void a_forked_child_is_refused_and_may_attach_for_itself() {
  const Folder folder;
  auto cache = std::make_unique<Cache>(folder.cache(), kPrint, 10, small_segments());
  put(*cache, 1);
  const int status = in_a_fork([&] {
    std::vector<std::byte> bytes(cache->length(1));
    bool right = has(refusal([&] { cache->claim(2); }), "make the feed after the fork") &&
                 !refusal([&] { (void)cache->read(1, bytes); }).empty() &&
                 !refusal([&] { cache->abandon(1); }).empty();
    cache.reset();  // which lets go of nothing of its parent's
    Cache own(folder.cache(), kPrint, 10, small_segments());
    right = right && Cache::state_of(folder.cache()).processes == 2;
    return right && own.claim(1) == Claim::ready && reads_right(own, 1);
  });
  CHECK(status == 0);
  CHECK(cache->claim(2) == Claim::ours);
}

// Its child lives on, with all that a fork hands down.
[[noreturn]] void claim_fork_and_wait_to_be_killed(const std::string& folder, int told) {
  Cache cache(folder, kPrint, 10, small_segments());
  CHECK(cache.claim(5) == Claim::ours);
  const auto child = ::fork();
  if (child != 0) CHECK(::write(told, &child, sizeof child) == sizeof child);
  for (;;) ::pause();
}

void a_killed_owners_claim_is_taken_over_though_its_forked_child_lives() {
  const Folder folder;
  std::array<int, 2> pipe{};
  CHECK(::pipe(pipe.data()) == 0);
  const auto owner = ::fork();
  CHECK(owner >= 0);
  if (owner == 0) claim_fork_and_wait_to_be_killed(folder.cache(), pipe[1]);
  auto child = owner;
  CHECK(::read(pipe[0], &child, sizeof child) == sizeof child);
  Cache cache(folder.cache(), kPrint, 10, small_segments());
  CHECK(cache.claim(5) == Claim::theirs);
  cache.wait(5, 1ms);
  CHECK(cache.claim(5) == Claim::theirs);
  CHECK(::kill(owner, SIGKILL) == 0 && ::waitpid(owner, nullptr, 0) == owner);
  cache.wait(5, 1h);
  CHECK(cache.claim(5) == Claim::ours && cache.stolen() == 1);
  CHECK(::kill(child, SIGKILL) == 0);
}

}  // namespace

int main() {
  a_killed_owners_claim_is_taken_over_though_its_forked_child_lives();
  a_forked_child_is_refused_and_may_attach_for_itself();
  a_published_sample_reads_back_here_and_after_attaching_again();
  a_claim_is_one_and_an_abandoned_one_is_free();
  a_waiter_is_woken_when_it_is_published();
  each_sample_is_fetched_once_by_many_threads();
  a_cache_smaller_than_the_data_is_filled_and_then_says_full();
  what_is_dropped_makes_room();
  a_small_data_set_takes_little_room_and_a_large_one_few_segments();
  a_reader_never_sees_other_bytes_while_another_drops();
  what_was_seen_and_has_moved_meanwhile_is_read_where_it_is_now();
  processes_share_the_reads_of_the_source_equally();
  its_state_is_told_and_it_is_removed_whole();
}
