#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cache/cache.h"
#include "peers/eviction.h"
#include "peers/schedule.h"
#include "peers/server.h"
#include "peers/settings.h"
#include "peers/wire.h"

namespace flowos::feed {

// What other nodes of the same run have in their caches, and what this one keeps for them.
// Whatever goes wrong with them, the source has it too: nothing here is an error of a sample.
class Peers {
 public:
  // What another node sends. It is read once, or thrown away.
  class Sample {
   public:
    Sample(Sample&&) noexcept;
    Sample& operator=(Sample&&) = delete;
    ~Sample();

    std::size_t size() const { return size_; }
    // size() bytes. False: they did not come, or not as they were sent.
    bool read(std::byte* into);

   private:
    friend class Peers;
    Sample(Peers& peers, std::uint32_t node, Line line, const Answer& answer);

    Peers* peers_;
    std::uint32_t node_;
    Line line_;
    std::size_t size_;
    std::uint32_t crc_;
  };

  // share: of any rank. cache: nodes whose caches are for other data do not talk to us. FeedError:
  // the settings do not fit, or nothing can listen here.
  Peers(const PeerSettings& settings, const Order& order, const Share& share,
        const std::shared_ptr<Cache>& cache);
  ~Peers();
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;

  // Asks the sample's owner. Nothing: we are that, it has not got it, or it does not answer.
  std::optional<Sample> ask(std::uint64_t sample);
  Eviction& eviction() { return eviction_; }
  // Ends what waits for another node, from any thread.
  void close();

  std::uint64_t given_bytes() const { return server_.given_bytes(); }
  // The first reason for which a node could not be asked, and why this one serves none; empty: all
  // is well.
  std::string complaint() const;

 private:
  using Clock = std::chrono::steady_clock;

  struct Node {
    Endpoint end;
    std::mutex mutex;
    std::condition_variable freed;
    std::vector<Line> idle;
    std::uint32_t lines = 0;  // idle or in use
    Clock::time_point rests_until;
  };

  std::optional<Line> borrow(Node& node, bool& is_new);
  void give_back(Node& node, Line line);
  void failed(Node& node, const std::string& why);
  std::optional<Line> call(Node& node);
  static bool exchange(const Line& line, std::uint64_t sample, Answer& answer);

  const PeerSettings settings_;
  const Password password_;
  const Readers readers_;
  Eviction eviction_;
  PeerServer server_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::atomic<bool> closed_ = false;
  mutable std::mutex mutex_;
  std::string complaint_;
};

}  // namespace flowos::feed
