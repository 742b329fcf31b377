#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/unique_fd.h"

namespace flowos::feed {

// What the library's readers of a source share: opening, reading and looking at files that may lie
// on a network, and how they are named to a person.

// On one line, whatever bytes a name holds: control characters and what is no UTF-8 as \xNN.
std::string shown(std::string_view name);
std::string shown_below(const std::string& root, std::string_view path);
// What an errno means.
std::string system_says(int error);
// The same, and what to do about it.
std::string why_unreadable(int error);

// A server has forgotten a file that is open here.
bool is_stale(int error);
// None, with errno. Interruptions are retried, and what a server has forgotten is tried again
// once.
Descriptor open_below(int folder, const std::string& path, int flags);
// Exactly so many bytes. False with errno, which is 0 where the file ended early.
bool read_at(int fd, std::byte* into, std::size_t bytes, std::uint64_t offset);

// The root of a data set, opened. Throws FeedError if it is no folder.
Descriptor open_root(const std::string& root);

}  // namespace flowos::feed
