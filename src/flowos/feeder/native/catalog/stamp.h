#pragma once

#include <sys/stat.h>

#include <string>

#include "base/unique_fd.h"
#include "catalog/catalog.h"

namespace flowos::feed {

// A shard or an array, opened, with its stamp. Throws FeedError if it cannot be read or is no file.
Descriptor open_piece(const std::string& root, int folder, const std::string& path,
                      Catalog::Stamp& stamp);
Catalog::Stamp stamp_of(std::string path, const struct stat& state);

}  // namespace flowos::feed
