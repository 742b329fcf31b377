// Two nodes of a run in one process: samples cached on one are sent to the other, and none is lost
// if that fails.

#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/errors.h"
#include "base/unique_fd.h"
#include "cache/cache.h"
#include "check.h"
#include "feeding.h"
#include "peers/settings.h"
#include "peers/wire.h"
#include "pipeline/feeder.h"

namespace {

using namespace feeding;
using feed::Feeder;
using feed::FeederSettings;
using feed::FeederStats;
using feed::PeerSettings;

constexpr std::uint64_t kCount = 400;

std::string free_address() {
  const feed::Descriptor socket = feed::listen_at({"127.0.0.1", "0"});
  sockaddr_in name{};
  socklen_t size = sizeof name;
  CHECK(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&name), &size) == 0);
  return "127.0.0.1:" + std::to_string(ntohs(name.sin_port));
}

struct Run {
  const DataSet& data;
  Folder folder;
  std::vector<std::string> nodes = {free_address(), free_address()};
  std::shared_ptr<feed::Cache> caches[2];
  std::unique_ptr<Feeder> feeders[2];

  Run(const DataSet& its_data, std::uint64_t max_bytes, const std::string& second_secret)
      : data(its_data) {
    for (std::uint32_t node = 0; node < 2; ++node) {
      caches[node] = std::make_shared<feed::Cache>(
          folder.at("cache" + std::to_string(node)), data.catalog->cache_key(), kCount,
          feed::Cache::Limits{
              .max_bytes = max_bytes, .min_free_bytes = 0, .segment_bytes = 64 << 10});
      feeders[node] = std::make_unique<Feeder>(
          settings(node, node == 0 ? "a secret that both know" : second_secret), data.catalog,
          data.files, caches[node], nullptr);
    }
  }

  FeederSettings settings(std::uint32_t node, const std::string& secret) const {
    FeederSettings settings;
    settings.share.batch_size = 8;
    settings.share.rank = node;
    settings.share.world_size = 2;
    settings.memory_bytes = 1;
    settings.seed = 3;
    settings.peers = PeerSettings{.nodes = nodes,
                                  .node = node,
                                  .node_of_rank = {},
                                  .secret = secret,
                                  .max_wait = std::chrono::seconds(60)};
    return settings;
  }

  void epoch(std::uint64_t number) {
    std::thread other([&] { check_epoch(*feeders[1], data, settings(1, ""), number); });
    check_epoch(*feeders[0], data, settings(0, ""), number);
    other.join();
  }

  FeederStats total() const {
    FeederStats sum = feeders[0]->stats();
    const FeederStats other = feeders[1]->stats();
    sum.source_samples += other.source_samples;
    sum.peer_samples += other.peer_samples;
    sum.peer_bytes += other.peer_bytes;
    return sum;
  }
};

void with_room_for_all_each_sample_comes_from_the_source_once(const DataSet& data) {
  Run run(data, 0, "a secret that both know");
  // The first batches of the second epoch may be read before the other node has them.
  constexpr std::uint64_t kAhead = 32;
  for (std::uint64_t epoch = 0; epoch < 4; ++epoch) run.epoch(epoch);
  const FeederStats stats = run.total();
  CHECK(stats.source_samples >= kCount && stats.source_samples <= kCount + kAhead);
  CHECK(stats.peer_samples > kCount / 4 && stats.peer_bytes > 0);
  CHECK(stats.complaint.empty());
}

void with_little_room_copies_give_way_and_every_sample_is_right(const DataSet& data) {
  // 300 slots: two hundred for its own, the rest for those of the other that it reads soonest.
  Run run(data, 300 << 12, "a secret that both know");
  for (std::uint64_t epoch = 0; epoch < 6; ++epoch) run.epoch(epoch);
  CHECK(run.total().source_samples <= kCount + kCount / 10);
}

void who_has_another_secret_reads_the_source(const DataSet& data) {
  Run run(data, 0, "a secret that is another one");
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch) run.epoch(epoch);
  const FeederStats stats = run.total();
  CHECK(stats.peer_samples == 0);
  CHECK(stats.source_samples > kCount + kCount / 4);
  CHECK(stats.complaint.find("another secret") != std::string::npos);
}

void a_node_that_ends_leaves_the_other_reading(const DataSet& data) {
  Run run(data, 0, "a secret that both know");
  run.epoch(0);
  run.feeders[1].reset();
  for (std::uint64_t epoch = 1; epoch < 3; ++epoch) {
    check_epoch(*run.feeders[0], data, run.settings(0, ""), epoch);
  }
}

void peers_without_a_cache_are_refused(const DataSet& data) {
  Run run(data, 0, "a secret that both know");
  std::string why;
  try {
    const Feeder feeder(run.settings(0, "a secret that both know"), data.catalog, data.files,
                        nullptr, nullptr);
  } catch (const feed::FeedError& error) {
    why = error.what();
  }
  CHECK(why.find("needs a cache") != std::string::npos);
}

}  // namespace

int main() {
  const Folder folder;
  const DataSet data = make_data_set(folder.at("data"), kCount, usual_size);
  with_room_for_all_each_sample_comes_from_the_source_once(data);
  with_little_room_copies_give_way_and_every_sample_is_right(data);
  who_has_another_secret_reads_the_source(data);
  a_node_that_ends_leaves_the_other_reading(data);
  peers_without_a_cache_are_refused(data);
}
