#include "pipeline/batch_builder.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/batch.h"
#include "pipeline/feeder.h"

namespace flowos::feed {

void BatchBuilder::open(const Plan& plan, std::size_t each, std::size_t capacity) {
  const std::uint32_t size = plan.share.size_of(plan.number);
  batch.arena.reserve(each > 0 ? each * size : capacity);
  batch.epoch = plan.epoch;
  batch.samples.assign(size, 0);
  batch.offsets.assign(size, 0);
  batch.lengths.assign(size, 0);
  places_.assign(size, nullptr);
  plan_ = plan;
  each_ = each;
  left_.store(size, std::memory_order_relaxed);
  filled_.store(each * size, std::memory_order_relaxed);
  discarded_.store(false, std::memory_order_relaxed);
  settled_ = {};
  error_.clear();
  ready = false;
}

std::byte* BatchBuilder::place(std::uint32_t slot, std::uint64_t sample, std::size_t bytes) {
  batch.samples[slot] = static_cast<std::int64_t>(sample);
  batch.lengths[slot] = static_cast<std::int64_t>(bytes);
  places_[slot] = each_ > 0 ? batch.arena.data() + slot * each_ : packed(bytes);
  return places_[slot];
}

std::byte* BatchBuilder::packed(std::size_t bytes) {
  const std::size_t taken = Sizes::taken(bytes);
  const std::size_t offset = filled_.fetch_add(taken, std::memory_order_relaxed);
  if (offset + taken <= batch.arena.capacity()) return batch.arena.data() + offset;
  auto memory = std::make_unique_for_overwrite<std::byte[]>(taken);
  const std::lock_guard lock(mutex_);
  return spilled_.emplace_back(std::move(memory)).get();
}

bool BatchBuilder::failed(std::uint32_t slot, std::string why) {
  {
    const std::lock_guard lock(mutex_);
    failures_.push_back({slot, std::move(why)});
  }
  return arrived();
}

void BatchBuilder::settle(OnError policy) {
  const std::size_t failures = failures_.size();
  if (failures > 0) {
    std::ranges::sort(failures_, {}, &Failure::slot);
    if (policy == OnError::error || failures == batch.samples.size()) {
      error_ = failures_.front().why;
      return;
    }
    settled_.why = failures_.front().why;
    if (policy == OnError::skip) {
      leave_out();
      settled_.skipped = failures;
    } else {
      stand_in();
      settled_.replaced = failures;
    }
  }
  const bool gaps = each_ > 0 && settled_.skipped > 0;
  if (gaps || !spilled_.empty()) {
    gather();
  } else {
    note_places();
  }
  return;
}

void BatchBuilder::leave_out() {
  std::size_t kept = 0;
  std::size_t failure = 0;
  for (std::size_t slot = 0; slot < places_.size(); ++slot) {
    if (failure < failures_.size() && failures_[failure].slot == slot) {
      ++failure;
      continue;
    }
    batch.samples[kept] = batch.samples[slot];
    batch.lengths[kept] = batch.lengths[slot];
    places_[kept] = places_[slot];
    ++kept;
  }
  batch.samples.resize(kept);
  batch.lengths.resize(kept);
  batch.offsets.resize(kept);
  places_.resize(kept);
}

// Each missing one becomes the next sample of the batch that is there.
void BatchBuilder::stand_in() {
  const std::size_t size = places_.size();
  std::vector<bool> missing(size, false);
  for (const Failure& failure : failures_) missing[failure.slot] = true;
  for (const Failure& failure : failures_) {
    const std::size_t slot = failure.slot;
    std::size_t other = slot;
    do {
      other = (other + 1) % size;
    } while (missing[other]);
    batch.samples[slot] = batch.samples[other];
    batch.lengths[slot] = batch.lengths[other];
    if (each_ > 0) {
      places_[slot] = batch.arena.data() + slot * each_;
      std::memcpy(places_[slot], places_[other], each_);
    } else {
      places_[slot] = places_[other];
    }
  }
}

// All that is there is copied to where it is in one piece. Nothing is moved: the threads that wrote
// the samples may still be reading them, for the cache.
void BatchBuilder::gather() {
  std::size_t total = 0;
  for (std::size_t slot = 0; slot < places_.size(); ++slot) {
    const auto length = static_cast<std::size_t>(batch.lengths[slot]);
    batch.offsets[slot] = static_cast<std::int64_t>(total);
    total += each_ > 0 ? each_ : Sizes::taken(length);
  }
  outgrown_ = std::exchange(batch.arena, Arena());
  batch.arena.reserve(std::max<std::size_t>(total, 1));
  for (std::size_t slot = 0; slot < places_.size(); ++slot) {
    const auto length = static_cast<std::size_t>(batch.lengths[slot]);
    if (length > 0) {
      std::memcpy(batch.arena.data() + batch.offsets[slot], places_[slot], length);
    }
  }
  batch.used_bytes = total;
}

void BatchBuilder::note_places() {
  for (std::size_t slot = 0; slot < places_.size(); ++slot) {
    batch.offsets[slot] = places_[slot] - batch.arena.data();
  }
  batch.used_bytes = each_ > 0 ? places_.size() * each_ : filled();
}

void BatchBuilder::clear() {
  failures_.clear();
  spilled_.clear();
  outgrown_ = Arena();
}

std::shared_ptr<BatchBuilder> Pool::take() {
  std::unique_ptr<BatchBuilder> builder;
  {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      builder = std::move(free_.back());
      free_.pop_back();
    }
  }
  if (!builder) builder = std::make_unique<BatchBuilder>();
  return {builder.release(), [pool = shared_from_this()](BatchBuilder* returned) {
            pool->give(std::unique_ptr<BatchBuilder>(returned));
          }};
}

void Pool::keep(std::size_t batches, std::size_t bytes_each) {
  batches_.store(batches, std::memory_order_relaxed);
  bytes_each_.store(bytes_each, std::memory_order_relaxed);
}

void Pool::give(std::unique_ptr<BatchBuilder> builder) {
  builder->clear();
  if (builder->filled() > bytes_each_.load(std::memory_order_relaxed)) return;
  const std::lock_guard lock(mutex_);
  if (free_.size() < batches_.load(std::memory_order_relaxed)) {
    free_.push_back(std::move(builder));
  }
}

void Sizes::note(std::size_t bytes) {
  bytes_.fetch_add(taken(bytes), std::memory_order_relaxed);
  samples_.fetch_add(1, std::memory_order_relaxed);
}

void Sizes::note_batch(std::size_t bytes) {
  std::uint64_t largest = largest_batch_.load(std::memory_order_relaxed);
  while (bytes > largest &&
         !largest_batch_.compare_exchange_weak(largest, bytes, std::memory_order_relaxed)) {
  }
}

std::size_t Sizes::expected(std::uint32_t samples) const {
  const std::uint64_t seen = samples_.load(std::memory_order_relaxed);
  if (seen == 0) return 0;
  return std::max<std::size_t>(bytes_.load(std::memory_order_relaxed) / seen * samples, 64);
}

std::size_t Sizes::capacity(std::uint32_t samples) const {
  constexpr std::size_t kUnknown = std::size_t{256} << 10;
  constexpr std::size_t kMaxUnknown = std::size_t{256} << 20;
  const std::size_t expected = this->expected(samples);
  if (expected == 0) return std::min(kUnknown * samples, kMaxUnknown);
  const std::uint64_t largest = largest_batch_.load(std::memory_order_relaxed);
  return std::max<std::size_t>(2 * expected, largest + largest / 8);
}

}  // namespace flowos::feed
