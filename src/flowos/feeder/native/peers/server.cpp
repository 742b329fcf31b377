#include "peers/server.h"

#include <sys/eventfd.h>
#include <sys/poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "base/crc32c.h"
#include "base/errors.h"
#include "base/signals_blocked.h"
#include "cache/cache.h"
#include "peers/wire.h"

namespace flowos::feed {
namespace {

constexpr int kLookAgainMs = 1000;
constexpr int kLooks = 2;
constexpr std::size_t kMaxGuests = 1024;
// Of those that have not shown yet that they know the secret.
constexpr std::ptrdiff_t kMaxStrangers = 64;

template <typename Function>
std::thread quiet_thread(Function function) {
  const SignalsBlocked blocked;
  return std::thread(std::move(function));
}

}  // namespace

PeerServer::PeerServer(Endpoint here, Password password, std::shared_ptr<Cache> cache,
                       std::chrono::milliseconds max_wait)
    : process_(::getpid()),
      here_(std::move(here)),
      password_(std::move(password)),
      cache_(std::move(cache)),
      max_wait_(max_wait),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!listen() && errno != EADDRINUSE) {
    throw FeedError("peers: cannot listen at " + here_.text() + ": " + reason_of(errno));
  }
  thread_ = quiet_thread([this] { run(); });
}

PeerServer::~PeerServer() {
  if (::getpid() != process_) {
    thread_.detach();
    for (Guest& guest : guests_) guest.thread.detach();
    return;
  }
  ending_ = true;
  const std::uint64_t one = 1;
  if (::write(wake_.get(), &one, sizeof one) < 0) {
  }  // it is awake already then
  thread_.join();
  for (Guest& guest : guests_) ::shutdown(guest.line.get(), SHUT_RDWR);
  for (Guest& guest : guests_) guest.thread.join();
}

bool PeerServer::listen() {
  listener_ = listen_at(here_);
  listens_ = static_cast<bool>(listener_);
  return listens_;
}

// Another process of this node listens, most likely; it is asked as any peer would, since another
// program would never give anything. A process that ends just now is no stranger: the second look
// says.
void PeerServer::look_at_listener() {
  if (looks_ == kLooks) return;
  const Line line = Line::to(here_, max_wait_);
  if (!line) return;
  if (greet_as_client(line, password_) == Greeting::welcome) {
    looks_ = kLooks;
  } else if (++looks_ == kLooks) {
    strange_ = true;
  }
}

std::string PeerServer::complaint() const {
  if (!strange_ || listens_) return "";
  return "peer " + here_.text() +
         ": that is this node, but another program, or another run, listens there: nothing is "
         "given to the others";
}

void PeerServer::run() {
  while (!ending_) {
    if (!listener_ && !listen()) look_at_listener();
    std::array<pollfd, 2> waits{
        {{.fd = wake_.get(), .events = POLLIN, .revents = 0},
         {.fd = listener_.get(), .events = POLLIN, .revents = 0}}};  // -1 is passed over
    ::poll(waits.data(), waits.size(), kLookAgainMs);
    if (ending_) return;
    part_from_gone();
    if (waits[1].revents != 0) receive_guest();
  }
}

void PeerServer::receive_guest() {
  Descriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!socket) return;
  const auto strangers =
      std::ranges::count_if(guests_, [](const Guest& guest) { return !guest.welcome.load(); });
  if (guests_.size() >= kMaxGuests || strangers >= kMaxStrangers) return;
  Guest& guest = guests_.emplace_back();
  guest.line = Line(std::move(socket), max_wait_);
  try {
    guest.thread = quiet_thread([this, &guest] {
      serve(guest);
      guest.gone = true;
    });
  } catch (const std::system_error&) {
    guests_.pop_back();
  }
}

void PeerServer::part_from_gone() {
  for (auto guest = guests_.begin(); guest != guests_.end();) {
    if (guest->gone) {
      guest->thread.join();
      guest = guests_.erase(guest);
    } else {
      ++guest;
    }
  }
}

void PeerServer::serve(Guest& guest) {
  if (greet_as_server(guest.line, password_) != Greeting::welcome) {
    ++refused_;
    // The other end shall see it now; the descriptor is closed when the thread is joined.
    ::shutdown(guest.line.get(), SHUT_RDWR);
    return;
  }
  guest.welcome = true;
  guest.line.wait_for_ever();
  std::unique_ptr<std::byte[]> memory;
  std::size_t capacity = 0;
  std::uint64_t sample = 0;
  try {
    while (guest.line.receive(std::as_writable_bytes(std::span(&sample, 1))) &&
           give(guest.line, sample, memory, capacity)) {
    }
  } catch (const std::exception&) {
    ++refused_;  // no memory, or no cache any more: the others ask elsewhere
  }
  ::shutdown(guest.line.get(), SHUT_RDWR);
}

bool PeerServer::give(const Line& line, std::uint64_t sample, std::unique_ptr<std::byte[]>& memory,
                      std::size_t& capacity) {
  Answer answer{Answer::kNotHere, 0, 0};
  std::span<const std::byte> bytes;
  if (const std::optional<Cache::Seen> seen = cache_->find(sample)) {
    const std::size_t length = seen->length;
    if (length > capacity) {
      memory = std::make_unique_for_overwrite<std::byte[]>(length);
      capacity = length;
    }
    if (cache_->read(sample, *seen, {memory.get(), length})) {
      bytes = {memory.get(), length};
      answer = {static_cast<std::int64_t>(length), crc32c(bytes), 0};
    } else {
      cache_->abandon(sample);  // damaged: whoever needs it here fetches it
    }
  }
  given_bytes_ += bytes.size();
  return line.send(std::as_bytes(std::span(&answer, 1)), !bytes.empty()) && line.send(bytes);
}

}  // namespace flowos::feed
