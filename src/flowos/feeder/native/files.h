#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "catalog.h"

namespace flowos::feed {

// A sample opened: its size is known, its bytes are not read yet. Closes what was opened for it.
class Opened {
 public:
  Opened(int fd, bool ours, std::uint64_t offset, std::uint64_t size) noexcept;
  Opened(Opened&& other) noexcept;
  Opened& operator=(Opened&&) = delete;
  ~Opened();

  std::uint64_t size() const { return size_; }
  // Exactly size() bytes. False with errno: it could not be read; errno 0: it ended early.
  bool read(std::byte* into) const;

 private:
  int fd_;
  bool ours_;
  std::uint64_t offset_;
  std::uint64_t size_;
};

// The samples of a catalog below a root that is mounted here. Safe to use from many threads.
class Files {
 public:
  Files(std::string root, std::shared_ptr<const Catalog> catalog);
  ~Files();

  // SampleError with the sample's name and what the system said. Files that hold several samples
  // stay open, as many as the limit of descriptors lets them.
  Opened open(std::uint64_t sample) const;
  // open and read, which must give what open promised; SampleError.
  void read(std::uint64_t sample, const Opened& opened, std::byte* into) const;

 private:
  struct Shared;
  std::string root_;
  std::shared_ptr<const Catalog> catalog_;
  std::unique_ptr<Shared> shared_;
};

}  // namespace flowos::feed
