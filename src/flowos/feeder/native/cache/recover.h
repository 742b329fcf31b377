#pragma once

#include <string>

#include "cache/folder.h"
#include "cache/index.h"

namespace flowos::feed::cache {

// Done by a process that is alone: claims of dead ones are undone, entries that cannot be right are
// emptied, those of an earlier start of the machine become unverified, files and room that no entry
// refers to are given back, and the state of segments is rebuilt from the entries. A process
// killed in the midst of it leaves it to the next.
void recover(const Folder& folder, const SharedIndex& index, const std::string& boot);

// The part of it that a process does for itself that can only read.
void empty_what_cannot_be_right(const Folder& folder, const SharedIndex& index);

}  // namespace flowos::feed::cache
