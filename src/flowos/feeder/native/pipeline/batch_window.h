#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>

#include "catalog/order.h"
#include "pipeline/batch_builder.h"

namespace flowos::feed {

// The batches between what the consumer had last and what is not begun yet, in order, over the ends
// of epochs: at least 2, at most 64, and between these as many as the memory allows; of no epoch
// further ahead than so many. The feeder's lock guards it.
class BatchWindow {
 public:
  // Every sample takes `each` bytes; 0: packed, by `sizes`.
  BatchWindow(const Share& share, std::uint64_t memory_bytes, std::uint64_t epochs_ahead,
              std::size_t each, const Sizes& sizes);

  // What follows for the consumer: this epoch from position `start`. False: it does anyway; else
  // all that was prepared is thrown away.
  bool seek(std::uint64_t epoch, std::uint64_t start);
  // The consumer has had the last batch of its epoch.
  bool ended() const { return taken_ == share_.batches(); }
  // What it gets next, when that is ready. Null: the epoch has ended, or it is not begun.
  const std::shared_ptr<BatchBuilder>& first() const;
  std::shared_ptr<BatchBuilder> take();
  std::uint32_t ready() const;

  // A slot may be claimed: there is one, and memory for it. Once that is used up, a quarter of it
  // has to be free again, so that threads are woken for several batches at a time.
  bool open() const {
    return filling_ || (window_.size() <= resume_at_ && plan_.epoch - epoch_ <= epochs_ahead_ &&
                        plan_.share.batches() > 0 && fits());
  }
  // The next slot in order, of which batch. std::bad_alloc.
  std::pair<std::shared_ptr<BatchBuilder>, std::uint32_t> claim();

 private:
  static constexpr std::size_t kMinBatches = 2, kMaxBatches = 64;

  bool fits() const;
  void begin_batch();
  void set_pool() const;
  std::size_t batch_bytes() const;

  std::uint64_t memory_bytes_;
  std::uint64_t epochs_ahead_;
  std::size_t each_;
  const Sizes& sizes_;
  std::shared_ptr<Pool> pool_ = std::make_shared<Pool>();

  // The consumer's place: it had `taken_` batches of this share of this epoch.
  std::uint64_t epoch_ = 0;
  Share share_;
  std::uint64_t taken_ = 0;

  std::deque<std::shared_ptr<BatchBuilder>> window_;
  std::shared_ptr<BatchBuilder> filling_;  // the last of these, while it has slots to claim
  std::uint32_t slot_ = 0;
  std::size_t resume_at_ = kMaxBatches;  // batches in the window
  BatchBuilder::Plan plan_;              // the next batch to begin
};

}  // namespace flowos::feed
