#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/unique_fd.h"

namespace flowos::feed {

// HOST:PORT, [IPv6]:PORT.
struct Endpoint {
  std::string host, port;

  // Throws FeedError for anything else.
  static Endpoint parse(const std::string& text);
  // As it is parsed.
  std::string text() const;
};

// Why a connection failed, of errno.
std::string reason_of(int error);

// What two ends of a connection have to agree on before they talk.
struct Password {
  std::string secret;
  std::uint64_t data;  // of which data set, so that samples of another are never served
};

// A TCP connection. Everything ends after `max_wait` without a byte: false. What is received has to
// come at a rate, too, so that a peer of a byte a second holds nothing up: each MiB begun in
// `max_wait`.
class Line {
 public:
  Line() = default;
  Line(Descriptor socket, std::chrono::milliseconds max_wait);

  // Empty on failure; errno says why.
  static Line to(const Endpoint& there, std::chrono::milliseconds max_wait);

  explicit operator bool() const { return static_cast<bool>(socket_); }
  int get() const { return socket_.get(); }
  bool send(std::span<const std::byte> bytes, bool more = false) const;
  bool receive(std::span<std::byte> bytes) const;
  // From now on a byte may be waited for without end.
  void wait_for_ever() const;

 private:
  Descriptor socket_;
  mutable std::chrono::milliseconds max_wait_{0};  // 0: without end
};

// Both ends show that they know the secret, and neither sends it: each answers the other's nonce
// with an HMAC-SHA256 of both nonces under a name of its own, so that no answer serves elsewhere.
// What follows is plain data.
enum class Greeting { welcome, refused, broken };
Greeting greet_as_server(const Line& line, const Password& password);
Greeting greet_as_client(const Line& line, const Password& password);

// Every request is the number of a sample; every answer begins with this, then come its bytes.
struct Answer {
  static constexpr std::int64_t kNotHere = -1;

  std::int64_t length;
  std::uint32_t crc;
  std::uint32_t reserved;
};
static_assert(sizeof(Answer) == 16);

// Listens at an address of this machine, for others of this run.
// A Descriptor without socket: errno says why not.
Descriptor listen_at(const Endpoint& here);

}  // namespace flowos::feed
