#include "peers/peers.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/crc32c.h"
#include "base/errors.h"
#include "cache/cache.h"
#include "catalog/order.h"
#include "peers/settings.h"
#include "peers/wire.h"

namespace flowos::feed {
namespace {

constexpr std::size_t kShortestSecret = 16;
// What is larger comes from the source: a length is believed only as far as memory for it is had.
constexpr std::int64_t kMaxBytes = std::int64_t{1} << 32;

PeerSettings checked(PeerSettings settings, const Share& share) {
  const std::size_t nodes = settings.nodes.size();
  if (settings.node >= nodes) {
    throw FeedError("peers: node " + std::to_string(settings.node) + " of " +
                    std::to_string(nodes) + ": nodes count from 0");
  }
  if (settings.secret.size() < kShortestSecret) {
    throw FeedError("peers: a secret of " + std::to_string(kShortestSecret) +
                    " characters at least, the same on all nodes");
  }
  auto& of_rank = settings.node_of_rank;
  if (of_rank.empty()) {  // equal parts, as launchers fill nodes
    for (std::uint32_t rank = 0; rank < share.world_size; ++rank) {
      of_rank.push_back(static_cast<std::uint32_t>(std::uint64_t{rank} * nodes / share.world_size));
    }
  }
  if (of_rank.size() != share.world_size ||
      std::ranges::any_of(of_rank, [&](std::uint32_t node) { return node >= nodes; })) {
    throw FeedError("peers: each of " + std::to_string(share.world_size) +
                    " ranks is to have one of " + std::to_string(nodes) + " nodes");
  }
  settings.connections = std::max(settings.connections, 1U);
  return settings;
}

}  // namespace

Peers::Peers(const PeerSettings& settings, const Order& order, const Share& share,
             const std::shared_ptr<Cache>& cache)
    : settings_(checked(settings, share)),
      password_{settings_.secret, cache->fingerprint()},
      readers_(order, share, settings_.node_of_rank),
      eviction_(readers_, settings_.node),
      server_(Endpoint::parse(settings_.nodes[settings_.node]), password_, cache,
              settings_.max_wait) {
  for (const std::string& text : settings_.nodes) {
    nodes_.push_back(std::make_unique<Node>());
    nodes_.back()->end = Endpoint::parse(text);
  }
}

Peers::~Peers() { close(); }

void Peers::close() {
  closed_ = true;
  for (const auto& node : nodes_) {
    const std::lock_guard lock(node->mutex);
    node->freed.notify_all();
  }
}

std::optional<Peers::Sample> Peers::ask(std::uint64_t sample) {
  const std::uint32_t owner = readers_.owner(sample);
  if (owner == settings_.node) return std::nullopt;
  Node& node = *nodes_[owner];
  for (;;) {
    bool is_new = false;
    std::optional<Line> line = borrow(node, is_new);
    if (!line) return std::nullopt;
    Answer answer{};
    if (exchange(*line, sample, answer)) {
      if (answer.length >= 0) return Sample(*this, owner, std::move(*line), answer);
      give_back(node, std::move(*line));
      return std::nullopt;
    }
    const std::string why = reason_of(errno);
    give_back(node, Line());
    // An idle connection may have ended since, with its process: try a new one.
    if (is_new) {
      failed(node, why);
      return std::nullopt;
    }
  }
}

bool Peers::exchange(const Line& line, std::uint64_t sample, Answer& answer) {
  errno = ECONNRESET;  // what an end without an error means here
  return line.send(std::as_bytes(std::span(&sample, 1))) &&
         line.receive(std::as_writable_bytes(std::span(&answer, 1))) &&
         answer.length >= Answer::kNotHere && answer.length <= kMaxBytes;
}

// An idle connection, else a new one where there may be more, else the next that is given back.
std::optional<Line> Peers::borrow(Node& node, bool& is_new) {
  std::unique_lock lock(node.mutex);
  node.freed.wait_for(lock, settings_.max_wait, [&] {
    return closed_ || !node.idle.empty() || node.lines < settings_.connections;
  });
  if (closed_ || Clock::now() < node.rests_until) return std::nullopt;
  if (!node.idle.empty()) {
    Line line = std::move(node.idle.back());
    node.idle.pop_back();
    return line;
  }
  if (node.lines >= settings_.connections) return std::nullopt;
  ++node.lines;
  lock.unlock();
  is_new = true;
  return call(node);
}

std::optional<Line> Peers::call(Node& node) {
  Line line = Line::to(node.end, settings_.max_wait);
  std::string why = line ? "" : reason_of(errno);
  if (line) {
    switch (greet_as_client(line, password_)) {
      case Greeting::welcome:
        return line;
      case Greeting::refused:
        why = "it has another secret, or other data";
        break;
      case Greeting::broken:
        why = "it hung up, or did not answer in time";
    }
  }
  give_back(node, Line());
  failed(node, why);
  return std::nullopt;
}

void Peers::give_back(Node& node, Line line) {
  const std::lock_guard lock(node.mutex);
  if (line) {
    node.idle.push_back(std::move(line));
  } else {
    --node.lines;
  }
  node.freed.notify_one();
}

void Peers::failed(Node& node, const std::string& why) {
  {
    const std::lock_guard lock(node.mutex);
    node.rests_until = Clock::now() + settings_.rest;
    node.lines -= static_cast<std::uint32_t>(node.idle.size());
    node.idle.clear();
    node.freed.notify_all();
  }
  const std::lock_guard lock(mutex_);
  if (complaint_.empty() && !closed_) {
    complaint_ =
        "peer " + node.end.text() + ": " + why + "; its samples come from the source meanwhile";
  }
}

std::string Peers::complaint() const {
  const std::string of_server = server_.complaint();
  const std::lock_guard lock(mutex_);
  return of_server + (of_server.empty() || complaint_.empty() ? "" : "; ") + complaint_;
}

Peers::Sample::Sample(Peers& peers, std::uint32_t node, Line line, const Answer& answer)
    : peers_(&peers),
      node_(node),
      line_(std::move(line)),
      size_(static_cast<std::size_t>(answer.length)),
      crc_(answer.crc) {}

Peers::Sample::Sample(Sample&& other) noexcept
    : peers_(std::exchange(other.peers_, nullptr)),
      node_(other.node_),
      line_(std::move(other.line_)),
      size_(other.size_),
      crc_(other.crc_) {}

// What was not read is still under way: the connection is of no more use.
Peers::Sample::~Sample() {
  if (peers_ != nullptr) peers_->give_back(*peers_->nodes_[node_], Line());
}

bool Peers::Sample::read(std::byte* into) {
  errno = ECONNRESET;
  const std::span<std::byte> bytes{into, size_};
  Peers& peers = *std::exchange(peers_, nullptr);
  Node& node = *peers.nodes_[node_];
  if (!line_.receive(bytes)) {
    const std::string why = reason_of(errno);
    peers.give_back(node, Line());
    peers.failed(node, why);
    return false;
  }
  peers.give_back(node, std::move(line_));
  return crc32c(bytes) == crc_;
}

}  // namespace flowos::feed
