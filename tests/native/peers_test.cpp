// Two nodes of a run on this machine, some of them with wrong secrets, or dead.
#include "peers/peers.h"

#include <netinet/in.h>
#include <sys/poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/crc32c.h"
#include "base/errors.h"
#include "base/unique_fd.h"
#include "cache/cache.h"
#include "cache_tools.h"
#include "catalog/order.h"
#include "check.h"
#include "peers/server.h"
#include "peers/settings.h"
#include "peers/wire.h"

using cache_tools::bytes_of;
using cache_tools::Folder;
using flowos::feed::Answer;
using flowos::feed::Cache;
using flowos::feed::Descriptor;
using flowos::feed::Endpoint;
using flowos::feed::FeedError;
using flowos::feed::Greeting;
using flowos::feed::Line;
using flowos::feed::Order;
using flowos::feed::Password;
using flowos::feed::Peers;
using flowos::feed::PeerServer;
using flowos::feed::PeerSettings;
using flowos::feed::Share;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

namespace {

constexpr std::uint64_t kCount = 400;
constexpr std::size_t kBytes = 10000;
constexpr std::uint64_t kData = 7;
constexpr char kSecret[] = "only those of this run know it";
constexpr milliseconds kPatience{200'000};

std::string free_address() {
  const Descriptor socket = flowos::feed::listen_at({"127.0.0.1", "0"});
  CHECK(socket);
  sockaddr_in name{};
  socklen_t size = sizeof name;
  CHECK(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&name), &size) == 0);
  return "127.0.0.1:" + std::to_string(ntohs(name.sin_port));
}

std::shared_ptr<Cache> cache_in(const Folder& folder, std::uint64_t data = kData) {
  return std::make_shared<Cache>(folder.cache(), data, kCount,
                                 Cache::Limits{0, 0, std::uint64_t{16} << 20});
}

void fill(Cache& cache) {
  for (std::uint64_t sample = 0; sample < kCount; ++sample) {
    CHECK(cache.claim(sample) == Cache::Claim::ours);
    cache.publish(sample, bytes_of(sample, kBytes));
  }
}

struct Pair {
  std::vector<std::string> nodes = {free_address(), free_address()};
  Folder folders[2];
  std::shared_ptr<Cache> caches[2] = {cache_in(folders[0]), cache_in(folders[1])};
  Order order{kCount, 1, true};
  Share share;

  Pair() {
    share.count = kCount;
    share.batch_size = 10;
    share.world_size = 2;
  }

  PeerSettings settings(std::uint32_t node) const {
    PeerSettings settings;
    settings.nodes = nodes;
    settings.node = node;
    settings.secret = kSecret;
    settings.max_wait = kPatience;
    settings.rest = kPatience;
    return settings;
  }
  std::unique_ptr<Peers> join(const PeerSettings& settings) {
    return std::make_unique<Peers>(settings, order, share, caches[settings.node]);
  }
  // One that the other node owns.
  std::uint64_t others(std::uint32_t node) const {
    return order.at(0, node == 0 ? share.batch_size : 0);
  }
};

bool comes_whole(Peers& peers, std::uint64_t sample) {
  auto found = peers.ask(sample);
  if (!found) return false;
  CHECK(found->size() == kBytes);
  std::vector<std::byte> bytes(found->size());
  return found->read(bytes.data()) && bytes == bytes_of(sample, kBytes);
}

bool comes_whole_in_the_end(Peers& peers, std::uint64_t sample, milliseconds patience = kPatience) {
  const Clock::time_point until = Clock::now() + patience;
  while (!comes_whole(peers, sample)) {
    if (Clock::now() >= until) return false;
    std::this_thread::sleep_for(milliseconds(20));
  }
  return true;
}

bool has(const std::string& text, const std::string& word) {
  return text.find(word) != std::string::npos;
}

void each_node_gives_what_it_owns_and_has() {
  Pair pair;
  fill(*pair.caches[1]);
  const auto first = pair.join(pair.settings(0));
  const auto second = pair.join(pair.settings(1));
  std::uint64_t came = 0;
  for (std::uint64_t sample = 0; sample < kCount; ++sample) came += comes_whole(*first, sample);
  CHECK(came == kCount / 2);
  CHECK(second->given_bytes() == came * kBytes);
  CHECK(!comes_whole(*second, pair.others(1)));  // the first has nothing
  CHECK(first->complaint().empty() && second->complaint().empty());
}

void many_threads_ask_at_once() {
  Pair pair;
  fill(*pair.caches[1]);
  PeerSettings few = pair.settings(0);
  few.connections = 3;
  const auto first = pair.join(few);
  const auto second = pair.join(pair.settings(1));
  std::atomic<std::uint64_t> came = 0;
  std::vector<std::thread> threads;
  threads.reserve(8);
  for (std::uint64_t t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint64_t sample = t; sample < kCount; sample += 8) {
        came += comes_whole(*first, sample);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(came == kCount / 2);
}

void who_does_not_know_the_secret_gets_nothing() {
  Pair pair;
  fill(*pair.caches[1]);
  PeerSettings wrong = pair.settings(0);
  wrong.secret = "another secret, as long";
  const auto first = pair.join(wrong);
  const auto second = pair.join(pair.settings(1));
  CHECK(!comes_whole(*first, pair.others(0)));
  CHECK(has(first->complaint(), "another secret"));
  CHECK(second->given_bytes() == 0);
}

void who_reads_other_data_gets_nothing() {
  Pair pair;
  fill(*pair.caches[1]);
  const Folder folder;
  Peers first(pair.settings(0), pair.order, pair.share, cache_in(folder, kData + 1));
  const auto second = pair.join(pair.settings(1));
  CHECK(!first.ask(pair.others(0)));
  CHECK(has(first.complaint(), "other data"));
}

// A server of an attacker: it knows the protocol, but not the secret.
void a_false_server_is_not_believed() {
  Pair pair;
  const auto first = pair.join(pair.settings(0));
  const Descriptor listener = flowos::feed::listen_at(Endpoint::parse(pair.nodes[1]));
  std::atomic<Greeting> seen = Greeting::welcome;
  std::thread server([&] {
    while (seen == Greeting::welcome) {
      const Line line(Descriptor(::accept(listener.get(), nullptr, nullptr)), kPatience);
      if (line) seen = greet_as_server(line, {"some other secret", kData});
    }
  });
  CHECK(!first->ask(pair.others(0)));
  server.join();
  CHECK(seen == Greeting::refused);
  CHECK(has(first->complaint(), "another secret"));
}

// What a node of the run sends after its greeting, then hangs up.
class Odd {
 public:
  Odd(const Pair& pair, std::vector<std::byte> answer)
      : listener_(flowos::feed::listen_at(Endpoint::parse(pair.nodes[1]))),
        thread_([this, answer = std::move(answer)] {
          Descriptor socket;
          while (!socket) socket = Descriptor(::accept(listener_.get(), nullptr, nullptr));
          const Line line(std::move(socket), kPatience);
          CHECK(greet_as_server(line, {kSecret, kData}) == Greeting::welcome);
          std::uint64_t sample = 0;
          CHECK(line.receive(std::as_writable_bytes(std::span(&sample, 1))));
          CHECK(line.send(answer));
        }) {}
  ~Odd() { thread_.join(); }

 private:
  Descriptor listener_;
  std::thread thread_;
};

std::vector<std::byte> answer_of(std::int64_t length, std::uint32_t crc,
                                 const std::vector<std::byte>& bytes) {
  const Answer head{length, crc, 0};
  const auto* start = reinterpret_cast<const std::byte*>(&head);
  std::vector<std::byte> answer(start, start + sizeof head);
  answer.insert(answer.end(), bytes.begin(), bytes.end());
  return answer;
}

void bytes_that_were_changed_on_their_way_are_not_taken() {
  Pair pair;
  const std::uint64_t sample = pair.others(0);
  std::vector<std::byte> bytes = bytes_of(sample, kBytes);
  const std::uint32_t crc = flowos::feed::crc32c(bytes);
  bytes[77] ^= std::byte{1};
  const auto first = pair.join(pair.settings(0));
  const Odd odd(pair, answer_of(kBytes, crc, bytes));
  CHECK(!comes_whole(*first, sample));
}

void a_node_that_dies_while_it_sends_is_left_alone() {
  Pair pair;
  fill(*pair.caches[1]);
  const std::uint64_t sample = pair.others(0);
  PeerSettings forgiving = pair.settings(0);
  forgiving.rest = milliseconds(3000);
  const auto first = pair.join(forgiving);
  const Clock::time_point before = Clock::now();
  {
    const Odd odd(pair, answer_of(kBytes, 0, bytes_of(sample, kBytes / 2)));
    CHECK(!comes_whole(*first, sample));
  }
  CHECK(!first->complaint().empty());
  const auto second = pair.join(pair.settings(1));
  CHECK(!first->ask(sample) || Clock::now() - before >= forgiving.rest);  // it rests
  CHECK(comes_whole_in_the_end(*first, sample));
}

void a_length_without_end_is_not_believed() {
  Pair pair;
  const auto first = pair.join(pair.settings(0));
  const Odd odd(pair, answer_of(INT64_MAX, 0, {}));
  CHECK(!first->ask(pair.others(0)));
}

void a_node_that_is_not_there_is_called_once() {
  Pair pair;
  const auto first = pair.join(pair.settings(0));
  CHECK(!first->ask(pair.others(0)));
  CHECK(has(first->complaint(), "Connection refused"));
  CHECK(has(first->complaint(), pair.nodes[1]));
  const Descriptor later = flowos::feed::listen_at(Endpoint::parse(pair.nodes[1]));
  for (int asked = 0; asked < 1000; ++asked) CHECK(!first->ask(pair.others(0)));
  pollfd call{.fd = later.get(), .events = POLLIN, .revents = 0};
  CHECK(::poll(&call, 1, 0) == 0);  // no connection was made
}

void a_node_that_does_not_answer_is_given_up() {
  Pair pair;
  PeerSettings hasty = pair.settings(0);
  hasty.max_wait = milliseconds(300);
  const auto first = pair.join(hasty);
  const Descriptor silent = flowos::feed::listen_at(Endpoint::parse(pair.nodes[1]));
  CHECK(!first->ask(pair.others(0)));
  CHECK(has(first->complaint(), "in time"));
}

void another_process_of_a_node_takes_over() {
  Pair pair;
  fill(*pair.caches[1]);
  PeerSettings often = pair.settings(0);
  often.rest = milliseconds(50);
  const auto first = pair.join(often);
  auto second = pair.join(pair.settings(1));
  const auto third = pair.join(pair.settings(1));  // the same node
  CHECK(comes_whole(*first, pair.others(0)));
  second.reset();
  CHECK(comes_whole_in_the_end(*first, pair.others(0)));
  CHECK(third->given_bytes() == kBytes);
}

void nothing_listens_but_where_it_was_said() {
  Pair pair;
  const auto first = pair.join(pair.settings(0));
  Endpoint here = Endpoint::parse(pair.nodes[0]);
  CHECK(Line::to(here, kPatience));
  here.host = "127.0.0.2";
  CHECK(!Line::to(here, kPatience));
}

// For longer than `max_wait` without a byte: in that time, the others have to greet too.
bool strangers_keep_the_others_out(milliseconds max_wait) {
  Pair pair;
  fill(*pair.caches[1]);
  PeerSettings often = pair.settings(0);
  often.rest = milliseconds(50);
  const auto first = pair.join(often);
  PeerSettings hasty = pair.settings(1);
  hasty.max_wait = max_wait;
  const auto second = pair.join(hasty);
  std::vector<Line> strangers;
  strangers.reserve(100);
  for (int i = 0; i < 100; ++i) {
    strangers.push_back(Line::to(Endpoint::parse(pair.nodes[1]), kPatience));
  }
  return !comes_whole_in_the_end(*first, pair.others(0), 20 * max_wait);
}

void strangers_do_not_keep_the_others_out_for_long() {
  CHECK(!strangers_keep_the_others_out(milliseconds(1000)) ||
        !strangers_keep_the_others_out(milliseconds(20'000)));  // on a busy machine
}

void closing_ends_what_waits() {
  Pair pair;
  PeerSettings patient = pair.settings(0);
  patient.connections = 1;
  fill(*pair.caches[1]);
  const auto first = pair.join(patient);
  const auto second = pair.join(pair.settings(1));
  const auto held = first->ask(pair.others(0));  // the only connection
  CHECK(held);
  std::thread waits([&] { CHECK(!first->ask(pair.others(0))); });
  std::this_thread::sleep_for(milliseconds(50));
  const Clock::time_point start = Clock::now();
  first->close();
  waits.join();
  CHECK(Clock::now() - start < kPatience / 2);
}

std::string complaint_of(const PeerSettings& settings, Pair& pair) {
  try {
    pair.join(settings);
  } catch (const FeedError& error) {
    return error.what();
  }
  return "";
}

void wrong_settings_are_told() {
  Pair pair;
  PeerSettings settings = pair.settings(0);
  settings.secret = "short";
  CHECK(has(complaint_of(settings, pair), "16 characters"));
  settings = pair.settings(0);
  settings.node_of_rank = {0, 5};
  CHECK(has(complaint_of(settings, pair), "one of 2 nodes"));
  for (const std::string bad : {"nowhere", "host:", ":80", "host:99999", "host:8x"}) {
    settings = pair.settings(0);
    settings.nodes[1] = bad;
    CHECK(has(complaint_of(settings, pair), "HOST:PORT"));
  }
  settings = pair.settings(0);
  settings.nodes[0] = "192.0.2.1:7000";  // documentation's: never ours
  CHECK(has(complaint_of(settings, pair), "cannot listen at 192.0.2.1:7000"));
}

}  // namespace

int main() {
  each_node_gives_what_it_owns_and_has();
  many_threads_ask_at_once();
  who_does_not_know_the_secret_gets_nothing();
  who_reads_other_data_gets_nothing();
  a_false_server_is_not_believed();
  bytes_that_were_changed_on_their_way_are_not_taken();
  a_node_that_dies_while_it_sends_is_left_alone();
  a_length_without_end_is_not_believed();
  a_node_that_is_not_there_is_called_once();
  a_node_that_does_not_answer_is_given_up();
  another_process_of_a_node_takes_over();
  nothing_listens_but_where_it_was_said();
  strangers_do_not_keep_the_others_out_for_long();
  closing_ends_what_waits();
  wrong_settings_are_told();
}
