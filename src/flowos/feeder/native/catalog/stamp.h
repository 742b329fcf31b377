#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <ctime>
#include <string>

#include "base/unique_fd.h"
#include "catalog/catalog.h"

namespace flowos::feed {

// Twice the coarsest time stamps in use, which are whole seconds.
inline constexpr std::int64_t settling_ns = 2'000'000'000;

// A shard or an array, opened, with its stamp. Throws FeedError if it cannot be read or is no file.
Descriptor open_piece(const std::string& root, int folder, const std::string& path,
                      Catalog::Stamp& stamp);
std::int64_t nanoseconds(const timespec& time);
Catalog::Stamp stamp_of(std::string path, const struct stat& state);

}  // namespace flowos::feed
