#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/errors.h"
#include "pipeline/feeder.h"
#include "pipeline/feeder_impl.h"
#include "pipeline/stage_times.h"

namespace flowos::feed {

// In the order of requests. No thread waits here for those that pull: one that did could not
// finish what they pushed, for which they may wait in turn. (See may_claim for what bounds it.)
void Feeder::Inside::hand_out(const Worker& self, const Slot& slot, Owned owned) {
  const std::lock_guard lock(mutex);
  if (closed || slot.builder->discarded()) return;
  requests.push_back({slot, std::move(owned), self.times.mark()});
  outgoing.notify_one();
}

bool Feeder::Inside::may_pull() const { return !requests.empty() && in_flight < source.allowed(); }

std::vector<Feeder::Ticket> Feeder::Inside::pull(std::size_t max_tickets) {
  if (files) throw FeedError("this feed reads its files itself: nothing is to be pulled");
  std::vector<Ticket> tickets;
  std::vector<Request> unwanted;  // abandoned when the lock is given back
  std::unique_lock lock(mutex);
  while (tickets.empty()) {
    outgoing.wait(lock, [&] { return closed || may_pull(); });
    if (closed) break;
    const Nanoseconds now = now_ns();
    while (may_pull() && tickets.size() < std::max<std::size_t>(max_tickets, 1)) {
      Request request = std::move(requests.front());
      requests.pop_front();
      if (request.slot.builder->discarded()) {
        unwanted.push_back(std::move(request));
        continue;
      }
      requests_waited += now - std::exchange(request.since, now);
      outside.begin(now);
      tickets.push_back({next_id, request.slot.sample});
      pulled.emplace(next_id++, std::move(request));
      ++in_flight;
    }
  }
  if (may_pull()) outgoing.notify_one();
  const bool wanted = another();
  lock.unlock();
  wake(wanted);
  return tickets;
}

std::optional<Request> Feeder::Inside::withdraw(std::uint64_t id, std::uint64_t samples,
                                                std::uint64_t bytes) {
  const std::lock_guard lock(mutex);
  const auto found = pulled.find(id);
  if (found == pulled.end()) return std::nullopt;
  Request request = std::move(found->second);
  pulled.erase(found);
  outside.end(request.since, now_ns());
  pushed.samples += samples;
  pushed.bytes += bytes;
  return request;
}

// What is left to do with it, by another thread: the caller is not held up by decoding or writing.
std::optional<Arrival> Feeder::Inside::accept(Request request, std::span<const std::byte> bytes) {
  if (decoder) {
    auto memory = std::make_unique_for_overwrite<std::byte[]>(bytes.size());
    std::ranges::copy(bytes, memory.get());
    const std::span<const std::byte> copied{memory.get(), bytes.size()};
    return Arrival{std::move(request), std::move(memory), copied};
  }
  const Slot& slot = request.slot;
  try {
    std::byte* into = place(slot, bytes.size());
    std::ranges::copy(bytes, into);
    arrived(slot, nullptr);
    if (!request.owned) return std::nullopt;
    return Arrival{std::move(request), nullptr, {into, bytes.size()}};
  } catch (const SampleError& error) {
    failed(slot, error.what(), nullptr);
    return std::nullopt;
  }
}

void Feeder::Inside::push(std::uint64_t id, std::span<const std::byte> bytes) {
  std::optional<Request> request = withdraw(id, 1, bytes.size());
  if (!request) return;
  std::optional<Arrival> arrival;
  try {
    arrival = accept(std::move(*request), bytes);
  } catch (const std::bad_alloc&) {
    break_down("no memory for a sample of " + std::to_string(bytes.size()) + " bytes");
  }
  const std::lock_guard lock(mutex);
  const Nanoseconds now = now_ns();
  note_source_read(bytes.size(), now);
  if (arrival && !closed) {
    arrival->since = now;
    arrivals.push_back(std::move(*arrival));
  } else {
    --in_flight;
    outgoing.notify_one();
  }
  wake(another());
}

void Feeder::Inside::fail(std::uint64_t id, const std::string& why) {
  const std::optional<Request> request = withdraw(id, 0, 0);
  if (!request) return;
  failed(request->slot, about(request->slot, why).what(), nullptr);
  const std::lock_guard lock(mutex);
  --in_flight;
  outgoing.notify_one();
}

}  // namespace flowos::feed
