#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "cache/folder.h"
#include "cache/index.h"
#include "cache/process_slots.h"

namespace flowos::feed::cache {

// A process's hold on a cache.
struct Attached {
  Folder folder;
  std::unique_ptr<Slots> slots;  // null: it can only be read
  std::unique_ptr<SharedIndex> index;
  std::uint16_t slot = 0;
  std::uint32_t generation = 0;  // of the slot: this process and no other
  std::uint64_t replaced = 0;    // samples of another list, removed
};

// FeedError; see Cache.
Attached attach(const std::string& path, std::uint64_t samples, std::uint64_t fingerprint,
                const std::string& neighbours);

// Of a cache without attached processes; returns the bytes freed. Throws FeedError.
std::uint64_t remove_all(const std::string& path,
                         std::chrono::milliseconds patience = std::chrono::seconds(30));

}  // namespace flowos::feed::cache
