#include "peers/wire.h"

#include <asm-generic/socket.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <sys/poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/errors.h"
#include "base/sha256.h"
#include "base/unique_fd.h"

namespace flowos::feed {
namespace {

constexpr std::string_view kMagic = "flowos1\n";
constexpr std::string_view kClient = "flowos feed: client";
constexpr std::string_view kServer = "flowos feed: server";

// What no connect() of TCP says: there is no such host.
constexpr int kNoSuchHost = EDESTADDRREQ;

using Nonce = std::array<std::byte, 32>;

template <std::integral T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

bool fresh(Nonce& nonce) {
  return ::getrandom(nonce.data(), nonce.size(), 0) == static_cast<ssize_t>(nonce.size());
}

Digest proof(const Password& password, std::string_view role, const Nonce& asked,
             const Nonce& own) {
  std::vector<std::byte> message;
  const auto add = [&](std::span<const std::byte> part) {
    message.insert(message.end(), part.begin(), part.end());
  };
  add(bytes_of(role));
  add(bytes_of(password.data));
  add(asked);
  add(own);
  return hmac_sha256(bytes_of(password.secret), message);
}

void set_limit(int socket, int option, std::chrono::milliseconds max_wait) {
  timeval limit{};
  limit.tv_sec = max_wait.count() / 1000;
  limit.tv_usec = max_wait.count() % 1000 * 1000;
  ::setsockopt(socket, SOL_SOCKET, option, &limit, sizeof limit);
}

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Addresses addresses_of(const Endpoint& end, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* found = nullptr;
  const int problem = ::getaddrinfo(end.host.c_str(), end.port.c_str(), &hints, &found);
  if (problem != 0) {
    if (problem != EAI_SYSTEM) errno = kNoSuchHost;
    found = nullptr;
  }
  return {found, &::freeaddrinfo};
}

bool connected(int socket, const addrinfo& address, std::chrono::milliseconds max_wait) {
  if (::connect(socket, address.ai_addr, address.ai_addrlen) == 0) return true;
  if (errno != EINPROGRESS) return false;
  pollfd wait{.fd = socket, .events = POLLOUT, .revents = 0};
  int ready = 0;
  do {
    ready = ::poll(&wait, 1, static_cast<int>(max_wait.count()));
  } while (ready < 0 && errno == EINTR);
  if (ready == 0) errno = ETIMEDOUT;
  if (ready != 1) return false;
  int problem = 0;
  socklen_t size = sizeof problem;
  ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &problem, &size);
  errno = problem;
  return problem == 0;
}

}  // namespace

Endpoint Endpoint::parse(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  std::string host = text.substr(0, colon == std::string::npos ? 0 : colon);
  const std::string port = colon == std::string::npos ? "" : text.substr(colon + 1);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  const bool is_number = !port.empty() && port.size() <= 5 &&
                         std::ranges::all_of(port, [](char c) { return c >= '0' && c <= '9'; });
  if (host.empty() || !is_number || std::stoi(port) > 65535) {
    throw FeedError("peers: " + text + " is no HOST:PORT");
  }
  return {host, port};
}

std::string Endpoint::text() const {
  const bool is_ipv6 = host.find(':') != std::string::npos;
  return (is_ipv6 ? "[" + host + "]" : host) + ":" + port;
}

std::string reason_of(int error) {
  if (error == kNoSuchHost) return "there is no host of this name";
  return error == EAGAIN || error == ETIMEDOUT ? "no answer in time" : std::strerror(error);
}

Line::Line(Descriptor socket, std::chrono::milliseconds max_wait)
    : socket_(std::move(socket)), max_wait_(max_wait) {
  if (!socket_) return;
  ::fcntl(socket_.get(), F_SETFL, ::fcntl(socket_.get(), F_GETFL) & ~O_NONBLOCK);
  const int yes = 1;
  ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
  set_limit(socket_.get(), SO_RCVTIMEO, max_wait);
  set_limit(socket_.get(), SO_SNDTIMEO, max_wait);
}

Line Line::to(const Endpoint& there, std::chrono::milliseconds max_wait) {
  const Addresses addresses = addresses_of(there, 0);
  for (const addrinfo* at = addresses.get(); at != nullptr; at = at->ai_next) {
    Descriptor socket(
        ::socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, at->ai_protocol));
    if (socket && connected(socket.get(), *at, max_wait)) return {std::move(socket), max_wait};
  }
  return {};
}

bool Line::send(std::span<const std::byte> bytes, bool more) const {
  while (!bytes.empty()) {
    const ssize_t sent =
        ::send(get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | (more ? MSG_MORE : 0));
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(sent));
  }
  return true;
}

bool Line::receive(std::span<std::byte> bytes) const {
  using Clock = std::chrono::steady_clock;
  const auto until =
      Clock::now() + max_wait_ * static_cast<std::int64_t>(1 + (bytes.size() >> 20U));
  while (!bytes.empty()) {
    const ssize_t got = ::recv(get(), bytes.data(), bytes.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(got));
    if (max_wait_.count() > 0 && !bytes.empty() && Clock::now() > until) {
      errno = ETIMEDOUT;
      return false;
    }
  }
  return true;
}

void Line::wait_for_ever() const {
  max_wait_ = std::chrono::milliseconds(0);
  set_limit(get(), SO_RCVTIMEO, max_wait_);
}

Greeting greet_as_server(const Line& line, const Password& password) {
  Nonce ours;
  Nonce theirs;
  Digest answer;
  if (!fresh(ours) || !line.send(bytes_of(kMagic), true) || !line.send(ours) ||
      !line.receive(theirs) || !line.receive(answer)) {
    return Greeting::broken;
  }
  if (!equal_in_constant_time(answer, proof(password, kClient, ours, theirs))) {
    return Greeting::refused;
  }
  return line.send(proof(password, kServer, theirs, ours)) ? Greeting::welcome : Greeting::broken;
}

Greeting greet_as_client(const Line& line, const Password& password) {
  std::array<std::byte, kMagic.size()> magic;
  Nonce theirs;
  Nonce ours;
  if (!line.receive(magic)) return Greeting::broken;
  if (!std::ranges::equal(magic, bytes_of(kMagic))) return Greeting::refused;
  if (!line.receive(theirs) || !fresh(ours) || !line.send(ours, true) ||
      !line.send(proof(password, kClient, theirs, ours))) {
    return Greeting::broken;
  }
  Digest answer;
  // A peer without our secret hangs up.
  if (!line.receive(answer)) return Greeting::refused;
  const bool is_right = equal_in_constant_time(answer, proof(password, kServer, ours, theirs));
  return is_right ? Greeting::welcome : Greeting::refused;
}

Descriptor listen_at(const Endpoint& here) {
  constexpr int kWaiting = 128;
  const Addresses addresses = addresses_of(here, AI_PASSIVE);
  for (const addrinfo* at = addresses.get(); at != nullptr; at = at->ai_next) {
    Descriptor socket(
        ::socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, at->ai_protocol));
    if (!socket) continue;
    const int yes = 1;
    ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (::bind(socket.get(), at->ai_addr, at->ai_addrlen) == 0 &&
        ::listen(socket.get(), kWaiting) == 0) {
      return socket;
    }
  }
  return Descriptor();
}

}  // namespace flowos::feed
