#include "pipeline/batch_window.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "catalog/order.h"
#include "pipeline/batch_builder.h"

namespace flowos::feed {
namespace {

Share from(Share share, std::uint64_t start) {
  share.start = start;
  return share;
}

// The first batch at or after this position: where nothing is left of the epoch, of the next one.
BatchBuilder::Plan first_at(const Share& share, std::uint64_t epoch, std::uint64_t start) {
  if (from(share, start).batches() > 0) return {epoch, from(share, start), 0};
  return {epoch + 1, from(share, 0), 0};
}

}  // namespace

BatchWindow::BatchWindow(const Share& share, std::uint64_t memory_bytes, std::uint64_t epochs_ahead,
                         std::size_t each, const Sizes& sizes)
    : memory_bytes_(memory_bytes),
      epochs_ahead_(epochs_ahead),
      each_(each),
      sizes_(sizes),
      share_(from(share, 0)),
      plan_(first_at(share, 0, 0)) {}

bool BatchWindow::seek(std::uint64_t epoch, std::uint64_t start) {
  const BatchBuilder::Plan due = ended() ? first_at(share_, epoch_ + 1, 0)
                                         : first_at(share_, epoch_, share_.start_after(taken_));
  const BatchBuilder::Plan wanted = first_at(share_, epoch, start);
  const bool failed =
      !window_.empty() && window_.front()->ready && !window_.front()->error().empty();
  epoch_ = epoch;
  share_.start = start;
  taken_ = 0;
  if (!failed && due.epoch == wanted.epoch && due.share.start == wanted.share.start) return false;
  for (const std::shared_ptr<BatchBuilder>& builder : window_) builder->discard();
  window_.clear();
  filling_.reset();
  resume_at_ = kMaxBatches;
  plan_ = wanted;
  return true;
}

const std::shared_ptr<BatchBuilder>& BatchWindow::first() const {
  static const std::shared_ptr<BatchBuilder> none;
  return window_.empty() || ended() ? none : window_.front();
}

std::shared_ptr<BatchBuilder> BatchWindow::take() {
  std::shared_ptr<BatchBuilder> builder = std::move(window_.front());
  window_.pop_front();
  builder->batch.number = taken_++;
  set_pool();
  return builder;
}

std::uint32_t BatchWindow::ready() const {
  return static_cast<std::uint32_t>(std::ranges::count_if(
      window_, [](const std::shared_ptr<BatchBuilder>& builder) { return builder->ready; }));
}

std::pair<std::shared_ptr<BatchBuilder>, std::uint32_t> BatchWindow::claim() {
  if (!filling_) begin_batch();
  std::pair<std::shared_ptr<BatchBuilder>, std::uint32_t> claimed{filling_, slot_++};
  if (slot_ == filling_->batch.samples.size()) {
    filling_.reset();
    const bool is_full = batch_bytes() > 0 && !fits();
    resume_at_ =
        is_full ? window_.size() - std::max<std::size_t>(window_.size() / 4, 1) : kMaxBatches;
  }
  return claimed;
}

void BatchWindow::begin_batch() {
  std::shared_ptr<BatchBuilder> builder = pool_->take();
  builder->open(plan_, each_, sizes_.capacity(share_.batch_size));
  window_.push_back(builder);
  filling_ = std::move(builder);
  slot_ = 0;
  if (++plan_.number == plan_.share.batches()) plan_ = first_at(share_, plan_.epoch + 1, 0);
  set_pool();
}

std::size_t BatchWindow::batch_bytes() const {
  return each_ > 0 ? each_ * share_.batch_size : sizes_.expected(share_.batch_size);
}

bool BatchWindow::fits() const {
  if (window_.size() < kMinBatches) return true;
  const std::size_t each = batch_bytes();
  if (window_.size() >= kMaxBatches || each == 0) return false;
  std::uint64_t held = each;
  for (const std::shared_ptr<BatchBuilder>& builder : window_) {
    held += std::max(builder->filled(), each);
  }
  return held <= memory_bytes_;
}

// Memory that is free counts as that of batches which could be begun; those in the consumer's hands
// come back besides.
void BatchWindow::set_pool() const {
  const std::size_t each = std::max<std::size_t>(batch_bytes(), 1);
  const std::size_t most = std::clamp<std::size_t>(memory_bytes_ / each, kMinBatches, kMaxBatches);
  constexpr std::size_t kInHand = 2;
  pool_->keep(most - std::min(most, window_.size()) + kInHand, 2 * each);
}

}  // namespace flowos::feed
