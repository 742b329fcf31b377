#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <thread>

#include "base/unique_fd.h"
#include "cache/cache.h"
#include "peers/wire.h"

namespace flowos::feed {

// Serves this node's cached samples to peers that know the secret. One process of a node listens;
// when it ends, another one takes over within a second. A thread per connection: they sleep nearly
// always, and a read of a disk blocks its own thread only.
class PeerServer {
 public:
  // Throws FeedError if this machine has no such address or may not listen there.
  PeerServer(Endpoint here, Password password, std::shared_ptr<Cache> cache,
             std::chrono::milliseconds max_wait);
  ~PeerServer();
  PeerServer(const PeerServer&) = delete;
  PeerServer& operator=(const PeerServer&) = delete;

  bool listens() const { return listens_; }
  std::uint64_t given_bytes() const { return given_bytes_; }
  std::uint64_t refused() const { return refused_; }
  // Why nothing is served, where another program has taken the address; else empty.
  std::string complaint() const;

 private:
  struct Guest {
    Line line;
    std::atomic<bool> welcome = false, gone = false;
    std::thread thread;
  };

  bool listen();
  void look_at_listener();
  void run();
  void receive_guest();
  void part_from_gone();
  void serve(Guest& guest);
  bool give(const Line& line, std::uint64_t sample, std::unique_ptr<std::byte[]>& memory,
            std::size_t& capacity);

  const pid_t process_;  // a forked child has our memory, but none of our threads
  const Endpoint here_;
  const Password password_;
  const std::shared_ptr<Cache> cache_;
  const std::chrono::milliseconds max_wait_;
  std::atomic<bool> listens_ = false, ending_ = false;
  std::atomic<std::uint64_t> given_bytes_ = 0, refused_ = 0;
  std::atomic<bool> strange_ = false;
  int looks_ = 0;  // of run() alone
  Descriptor listener_, wake_;
  std::list<Guest> guests_;  // only run() adds and removes; a destructor comes after it
  std::thread thread_;
};

}  // namespace flowos::feed
