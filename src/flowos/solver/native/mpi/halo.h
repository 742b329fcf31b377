#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "mpi/links.h"

namespace flowos::solve {

// Sends what other ranks wait for and takes what we wait for, colour by colour: begin() once the
// lines of `first` are computed, end() before the next colour needs those of others. One thread
// calls both (MPI_THREAD_FUNNELED).
template <class Value>
class Halo {
 public:
  // The links must stay where they are.
  Halo(int lanes, const std::vector<ColourLinks>& colours, MPI_Comm comm)
      : lanes_(static_cast<std::size_t>(lanes)) {
    colours_.reserve(colours.size());
    for (const ColourLinks& links : colours) {
      colours_.emplace_back();
      for (const Link& link : links.links) add(link, static_cast<int>(colours_.size()), comm);
    }
  }
  Halo(const Halo&) = delete;
  Halo& operator=(const Halo&) = delete;
  ~Halo() {
    for (Colour& colour : colours_)
      for (MPI_Request& request : colour.requests) MPI_Request_free(&request);
  }

  void begin(int colour, const Value* vector) {
    Colour& its = colours_[static_cast<std::size_t>(colour)];
    for (Peer& peer : its.peers) {
      Value* to = peer.out.data();
      for (const std::int32_t line : *peer.out_lines)
        to = std::copy_n(vector + static_cast<std::size_t>(line) * lanes_, lanes_, to);
    }
    if (!its.requests.empty())
      MPI_Startall(static_cast<int>(its.requests.size()), its.requests.data());
  }

  // Takes the lines of all colours.
  void all(Value* vector) {
    for (int colour = 0; colour < static_cast<int>(colours_.size()); colour++) {
      begin(colour, vector);
      end(colour, vector);
    }
  }

  void end(int colour, Value* vector) {
    Colour& its = colours_[static_cast<std::size_t>(colour)];
    if (its.requests.empty()) return;
    MPI_Waitall(static_cast<int>(its.requests.size()), its.requests.data(), MPI_STATUSES_IGNORE);
    for (const Peer& peer : its.peers) {
      const Value* from = peer.in.data();
      for (const std::int32_t line : *peer.in_lines) {
        std::copy_n(from, lanes_, vector + static_cast<std::size_t>(line) * lanes_);
        from += lanes_;
      }
    }
  }

 private:
  struct Peer {
    const std::vector<std::int32_t>*out_lines, *in_lines;
    std::vector<Value> out, in;
  };
  struct Colour {
    std::vector<Peer> peers;
    std::vector<MPI_Request> requests;  // started together
  };

  void add(const Link& link, int tag, MPI_Comm comm) {
    Colour& its = colours_.back();
    its.peers.push_back({.out_lines = &link.out,
                         .in_lines = &link.in,
                         .out = std::vector<Value>(link.out.size() * lanes_),
                         .in = std::vector<Value>(link.in.size() * lanes_)});
    Peer& peer = its.peers.back();  // moving a vector leaves its values where they are
    static_assert(std::is_same_v<Value, float> || std::is_same_v<Value, double>);
    const MPI_Datatype type = std::is_same_v<Value, float> ? MPI_FLOAT : MPI_DOUBLE;
    if (!peer.in.empty())
      MPI_Recv_init(peer.in.data(), static_cast<int>(peer.in.size()), type, link.rank, tag, comm,
                    &its.requests.emplace_back());
    if (!peer.out.empty())
      MPI_Send_init(peer.out.data(), static_cast<int>(peer.out.size()), type, link.rank, tag, comm,
                    &its.requests.emplace_back());
  }

  std::size_t lanes_;
  std::vector<Colour> colours_;
};

}  // namespace flowos::solve
