#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <utility>
#include <variant>

#include "base/signals_blocked.h"
#include "pipeline/batch_builder.h"
#include "pipeline/feeder.h"
#include "pipeline/feeder_impl.h"
#include "pipeline/stage_times.h"

namespace flowos::feed {

Feeder::Inside::Away::Away(Inside& inside, Worker& self, std::uint32_t& there, bool waits,
                           std::unique_lock<std::mutex>& lock)
    : inside_(inside), times_(self.times), there_(there), waits_(waits) {
  ++there_;
  if (waits_) {
    --inside_.busy;
    inside_.outside.begin(times_.mark());
    inside_.look();
  }
  const bool wanted = inside_.another();
  lock.unlock();
  inside_.wake(wanted);
}

Feeder::Inside::Away::~Away() {
  if (!waits_) times_.lap(Work::fetch);
  {
    const std::lock_guard lock(inside_.mutex);
    if (waits_) {
      const Nanoseconds now = now_ns();
      inside_.outside.end(times_.mark(), now);
      times_.skip_to(now);
    }
    if (bytes_ > 0) inside_.note_source_read(bytes_, times_.mark());
    if (slept_) inside_.note_sleep(*slept_);
    --there_;
    if (waits_) {
      ++inside_.busy;
      inside_.look();
    }
  }
  inside_.room.notify_one();
}

std::byte* Feeder::Inside::Worker::buffer(std::size_t bytes) {
  // One giant among the samples shall not stay in memory once per thread.
  constexpr std::size_t kLarge = std::size_t{8} << 20;
  if (bytes > capacity || capacity > std::max(kLarge, bytes)) {
    memory.reset();
    capacity = std::max<std::size_t>(bytes + bytes / 4, 4096);
    memory = std::make_unique_for_overwrite<std::byte[]>(capacity);
  }
  return memory.get();
}

// Where others bring the bytes, not many more are asked for than may be in flight.
bool Feeder::Inside::has_errand() const {
  return started && !closed && broken.empty() && (!arrivals.empty() || may_claim());
}

// Not more than others can be asked to bring, or are waited for: no busy thread waits for them,
// so that what they bring always finds a thread.
bool Feeder::Inside::may_claim() const {
  const bool may_ask = files || requests.size() < source.allowed();
  return may_ask && elsewhere < kMaxElsewhere && window.open();
}

// Whether another thread is to be woken, which is done when the lock is given back; where all are
// at work it is started. Whatever makes an errand or a place among the busy asks; the thread that
// takes an errand asks again, so that one after the other is woken for as long as there is
// something to do.
bool Feeder::Inside::another() {
  if (busy >= cached.allowed() || !has_errand()) return false;
  if (idle > 0) return waking = true;
  if (threads.size() < max_threads) spawn();
  return false;
}

void Feeder::Inside::spawn() {
  const SignalsBlocked blocked;
  ThreadTimes& its_times = *times.emplace_back(std::make_unique<ThreadTimes>());
  try {
    threads.emplace_back([this, &its_times] { run(its_times); });
  } catch (const std::system_error& error) {
    max_threads = threads.size();
    if (threads.empty()) {
      broken = std::string("no thread can be started: ") + error.what();
      ready.notify_all();
    }
  }
}

void Feeder::Inside::run(ThreadTimes& its_times) {
  Worker self(its_times);
  try {
    for (;;) {
      Errand errand = take(self);
      if (auto* slot = std::get_if<Slot>(&errand)) {
        fetch(self, *slot);
      } else if (auto* arrival = std::get_if<Arrival>(&errand)) {
        finish(self, std::move(*arrival));
      } else {
        return;
      }
    }
  } catch (const std::exception& error) {
    break_down(error.what());
  }
}

Feeder::Inside::Errand Feeder::Inside::take(Worker& self) {
  std::unique_lock lock(mutex);
  if (self.bytes_while_busy > 0) {
    cached.ended(seconds_of(self.times.mark()), std::exchange(self.bytes_while_busy, 0), busy);
  }
  if (self.busy && (busy > cached.allowed() || !has_errand())) {
    self.busy = false;
    --busy;
  }
  look();
  if (!self.busy) {
    ++idle;
    work.wait(lock, [&] {
      waking = false;
      return closed || (busy < cached.allowed() && has_errand());
    });
    --idle;
    if (closed) return {};
    self.busy = true;
    ++busy;
    look();
    self.times.skip_to(now_ns());
  }
  if (!arrivals.empty()) {
    Arrival errand = std::move(arrivals.front());
    arrivals.pop_front();
    --in_flight;
    const Nanoseconds now = now_ns();
    arrivals_waited += now - errand.since;
    self.times.skip_to(now);
    const bool wanted = another();
    lock.unlock();
    outgoing.notify_one();
    wake(wanted);
    return errand;
  }
  auto [builder, number] = window.claim();
  const bool wanted = another();
  lock.unlock();
  wake(wanted);
  const BatchBuilder::Plan& plan = builder->plan();
  const std::uint64_t position = plan.share.position(plan.number, number);
  const std::uint64_t sample = order.at(plan.epoch, position);
  return Slot{std::move(builder), number, sample};
}

void Feeder::Inside::look() {
  using For = Waits::For;
  For what = For::none;
  if (started && !closed) {
    const bool all_at_work = busy - in_room >= cached.allowed();
    what = consumers == 0 ? For::nothing : all_at_work ? For::threads : For::reads;
  }
  if (consumer_waits.differs(what)) consumer_waits.turn(what, now_ns());
}

void Feeder::Inside::note_source_read(std::uint64_t bytes, Nanoseconds at) {
  constexpr double kLookAgainSeconds = 0.5;
  const double now = seconds_of(at);
  if (cache && now - shared_at > kLookAgainSeconds) {
    shared_at = now;
    source.set_max(cache->part_of(settings.max_in_flight));
  }
  const std::uint32_t before = source.allowed();
  source.ended(now, bytes, in_flight);
  if (source.allowed() > before) {
    room.notify_all();
    outgoing.notify_all();
  }
}

void Feeder::Inside::note_sleep(bool slept) {
  sleeping_share += ((slept ? 1.0 : 0.0) - sleeping_share) / 8;
  if (sleeping_share < 0.05) source_sleeps = false;
  if (sleeping_share > 0.2) source_sleeps = true;
}

void Feeder::Inside::arrived(const Slot& slot, ThreadTimes* its_times) {
  if (slot.builder->arrived()) settle(slot.builder, its_times);
}

void Feeder::Inside::failed(const Slot& slot, const std::string& why, ThreadTimes* its_times) {
  if (slot.builder->failed(slot.number, why)) settle(slot.builder, its_times);
}

// By the thread that brought the last sample.
void Feeder::Inside::settle(const std::shared_ptr<BatchBuilder>& builder, ThreadTimes* its_times) {
  if (builder->discarded()) return;
  const Nanoseconds began = now_ns();
  builder->settle(settings.on_error);
  builder->batch.writable = decoder != nullptr || cache == nullptr;
  sizes.note_batch(builder->filled());
  const Nanoseconds now = now_ns();
  if (its_times != nullptr) its_times->skip_to(now);
  const std::lock_guard lock(mutex);
  settling += now - began;
  builder->ready_since = now;
  builder->ready = true;
  if (window.first() == builder) ready.notify_all();
}

void Feeder::Inside::break_down(const std::string& why) {
  const std::lock_guard lock(mutex);
  if (broken.empty()) broken = why.empty() ? "the feed broke down" : why;
  ready.notify_all();
}

}  // namespace flowos::feed
