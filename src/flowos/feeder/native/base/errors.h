#pragma once

#include <stdexcept>

namespace flowos::feed {

// One line for a person: what was wrong, where, and how to mend it.
struct FeedError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The storage is full, or the user's share of it: what is removed makes room.
struct NoRoom : FeedError {
  using FeedError::FeedError;
};

// One sample cannot be had: it is missing, unreadable, truncated, or cannot be decoded. Names it.
struct SampleError : FeedError {
  using FeedError::FeedError;
};

}  // namespace flowos::feed
