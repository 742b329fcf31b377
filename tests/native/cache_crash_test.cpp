// Processes that use one cache are killed at random moments and restarted.

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bytes.h"
#include "cache/cache.h"
#include "cache/layout.h"
#include "cache_tools.h"
#include "check.h"

using namespace cache_tools;
using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t kPrint = 0xFEEDULL;
constexpr std::uint64_t kSamples = 400;
constexpr unsigned kKills = 100;
constexpr auto kPatience = 300s;

// What all processes together have seen.
struct Tally {
  std::atomic<std::uint64_t> published{0}, read{0}, stolen{0}, damaged{0};
};

auto now() { return std::chrono::steady_clock::now(); }

void one_turn(Cache& cache, std::mt19937& random, Tally& tally) {
  const std::uint64_t sample = random() % kSamples;
  Claim claim = cache.claim(sample);
  for (const auto begin = now(); claim == Claim::theirs; claim = cache.claim(sample)) {
    cache.wait(sample, 100ms);
    CHECK(now() - begin < kPatience);  // else it is stuck
  }
  CHECK(claim != Claim::full);
  if (claim == Claim::ready) {
    std::vector<std::byte> bytes(bytes_of(sample).size());
    if (cache.read(sample, bytes)) {
      CHECK(same_bytes(bytes, bytes_of(sample)));
      ++tally.read;
      if (random() % 4 == 0) cache.drop(sample);
      return;
    }
  }
  if (random() % 8 == 0) std::this_thread::sleep_for(1ms);
  if (random() % 16 == 0) {
    cache.abandon(sample);
  } else {
    cache.publish(sample, bytes_of(sample));
    ++tally.published;
  }
}

[[noreturn]] void work_until_killed(const std::string& folder, unsigned seed, Tally& tally) {
  Cache cache(folder, kPrint, kSamples, small_segments());
  const auto turns = [&](unsigned number) {
    std::mt19937 random(seed + 1000 * number);
    for (;;) one_turn(cache, random, tally);
  };
  std::thread second(turns, 1);
  second.detach();
  std::mt19937 random(seed);
  for (std::uint64_t stolen = 0, damaged = 0;;) {
    one_turn(cache, random, tally);
    tally.stolen += cache.stolen() - stolen;
    tally.damaged += cache.damaged() - damaged;
    stolen = cache.stolen();
    damaged = cache.damaged();
  }
}

class Workers {
 public:
  Workers(std::string folder, Tally& tally) : folder_(std::move(folder)), tally_(tally) {
    for (pid_t& worker : workers_) worker = started();
  }

  void replace(std::size_t which) {
    end(workers_[which]);
    workers_[which] = started();
  }

  void replace_all() {
    for (const pid_t worker : workers_) CHECK(::kill(worker, SIGSTOP) == 0);
    for (const pid_t worker : workers_) end(worker);
    for (pid_t& worker : workers_) worker = started();
  }

  void end_all() {
    for (const pid_t worker : workers_) end(worker);
  }

 private:
  pid_t started() {
    ++seed_;
    const pid_t worker = ::fork();
    CHECK(worker >= 0);
    if (worker == 0) work_until_killed(folder_, seed_, tally_);
    return worker;
  }

  static void end(pid_t worker) {
    int status = 0;
    CHECK(::kill(worker, SIGKILL) == 0 && ::waitpid(worker, &status, 0) == worker);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);  // and no CHECK of its own
  }

  std::string folder_;
  Tally& tally_;
  unsigned seed_ = 0;
  std::array<pid_t, 4> workers_{};
};

// More where the machine is so slow that no claim was taken over yet.
unsigned kill_at_random(Workers& workers, const Tally& tally) {
  std::mt19937 random(11);
  unsigned kills = 0;
  const auto begin = now();
  while (kills < kKills || (tally.stolen == 0 && now() - begin < kPatience)) {
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 30'000));
    if (random() % 16 == 0) {
      workers.replace_all();
      kills += 4;
    } else {
      workers.replace(random() % 4);
      ++kills;
    }
  }
  workers.end_all();
  return kills;
}

void what_is_left_is_right(const std::string& folder) {
  Cache cache(folder, kPrint, kSamples, small_segments());
  const std::uint64_t kept = Cache::state_of(folder).bytes;
  const std::uint64_t open = std::uint64_t{flowos::feed::cache::kLanes} << 20;
  CHECK(segment_bytes_of(folder) <= kept + open);
  for (std::uint64_t sample = 0; sample < kSamples; ++sample) {
    const Claim claim = cache.claim(sample);
    CHECK(claim == Claim::ready ? reads_right(cache, sample) : claim == Claim::ours);
  }
  CHECK(cache.damaged() == 0);
}

}  // namespace

int main() {
  const Folder folder;
  void* shared =
      ::mmap(nullptr, sizeof(Tally), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(shared != MAP_FAILED);
  Tally& tally = *new (shared) Tally;
  Workers workers(folder.cache(), tally);
  const unsigned kills = kill_at_random(workers, tally);
  std::cout << kills << " kills, " << tally.published << " published, " << tally.read << " read, "
            << tally.stolen << " claims of dead processes taken over\n";
  CHECK(tally.published > 0 && tally.read > 0 && tally.stolen > 0);
  CHECK(tally.damaged == 0);
  what_is_left_is_right(folder.cache());
}
