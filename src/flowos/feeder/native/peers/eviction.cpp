#include "peers/eviction.h"

#include <cstdint>
#include <mutex>
#include <optional>

namespace flowos::feed {

void Eviction::kept(std::uint64_t sample, std::uint64_t epoch) {
  if (readers_.owner(sample) == node_) return;
  const std::uint64_t next = readers_.next_read(node_, sample, epoch);
  const std::lock_guard lock(mutex_);
  forget(sample);
  copies_.emplace(next, sample);
  next_.emplace(sample, next);
}

std::optional<std::uint64_t> Eviction::gives_way(std::uint64_t sample, std::uint64_t epoch) {
  const bool is_own = readers_.owner(sample) == node_;
  const std::uint64_t next = is_own ? 0 : readers_.next_read(node_, sample, epoch);
  const std::lock_guard lock(mutex_);
  correct(epoch * readers_.count());
  if (copies_.empty() || copies_.rbegin()->first <= next) return std::nullopt;
  const std::uint64_t last = copies_.rbegin()->second;
  forget(last);
  return last;
}

void Eviction::gone(std::uint64_t sample) {
  const std::lock_guard lock(mutex_);
  forget(sample);
}

void Eviction::forget(std::uint64_t sample) {
  const auto found = next_.find(sample);
  if (found == next_.end()) return;
  copies_.erase({found->second, sample});
  next_.erase(found);
}

// A read that should have been by now was another process's: it knows the sample now, as we do.
void Eviction::correct(std::uint64_t now) {
  while (!copies_.empty() && copies_.begin()->first < now) {
    const std::uint64_t sample = copies_.begin()->second;
    forget(sample);
    const std::uint64_t epoch = now / readers_.count();
    // Looked for from the epoch before: within this one it may still come.
    const std::uint64_t next = readers_.next_read(node_, sample, epoch == 0 ? 0 : epoch - 1);
    copies_.emplace(next, sample);
    next_.emplace(sample, next);
  }
}

}  // namespace flowos::feed
