#pragma once

#include <cstdint>
#include <string>

namespace flowos::feed::cache {

// Removes the least recently used cache that no process uses, of those that lie as
// NEIGHBOURS/NAME/samples, this one left out: the bytes that were freed, 0: there is none to
// remove. Never throws: what cannot be removed stays.
std::uint64_t evict_oldest(const std::string& neighbours, const std::string& mine);

}  // namespace flowos::feed::cache
