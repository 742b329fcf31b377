#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace flowos::feed {

// How the nodes of a run give each other what they have cached.
struct PeerSettings {
  std::vector<std::string> nodes;            // HOST:PORT of each; we listen at ours, nowhere else
  std::uint32_t node = 0;                    // which of these we are
  std::vector<std::uint32_t> node_of_rank;   // of each rank; empty: rank by rank
  std::string secret;                        // of the run, 16 bytes at least
  std::chrono::milliseconds max_wait{2000};  // to wait for a connection, or for the next byte
  std::chrono::milliseconds rest{10000};     // how long one that failed is left alone
  std::uint32_t connections = 16;            // at most, to each node
};

}  // namespace flowos::feed
