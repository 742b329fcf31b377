#pragma once

// Shared by the tests of the cache: a temporary folder, samples whose bytes follow from their
// number, and functions that change a cache's files.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/errors.h"
#include "bytes.h"
#include "cache/cache.h"
#include "cache/layout.h"
#include "check.h"

namespace cache_tools {

using flowos::feed::Cache;
using Claim = flowos::feed::Cache::Claim;

class Folder {
 public:
  Folder() : Folder(std::filesystem::temp_directory_path().string()) {}
  explicit Folder(const std::string& below) {
    std::string pattern = below + "/flowos-cache-XXXXXX";
    CHECK(::mkdtemp(pattern.data()) != nullptr);
    top_ = pattern;
  }
  ~Folder() { std::filesystem::remove_all(top_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string cache() const { return top_ + "/cache"; }
  std::string file(std::string_view name) const { return cache() + "/" + std::string(name); }

 private:
  std::string top_;
};

inline std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

inline std::vector<std::byte> bytes_of(std::uint64_t sample, std::size_t count) {
  std::vector<std::uint64_t> words((count + 7) / 8);
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = mixed((sample << 32) + 8 * i);
  const auto bytes = std::as_bytes(std::span(words)).first(count);
  return {bytes.begin(), bytes.end()};
}

// 1 to 20 KiB, some empty.
inline std::vector<std::byte> bytes_of(std::uint64_t sample) {
  return bytes_of(sample, sample % 97 == 0 ? 0 : 1 + mixed(sample) % 20'000);
}

inline Cache::Limits small_segments(std::uint64_t max_bytes = 0) {
  return {.max_bytes = max_bytes, .min_free_bytes = 0, .segment_bytes = 1 << 20};
}

inline void put(Cache& cache, std::uint64_t sample) {
  CHECK(cache.claim(sample) == Claim::ours);
  cache.publish(sample, bytes_of(sample));
}

inline bool reads_right(Cache& cache, std::uint64_t sample) {
  std::vector<std::byte> bytes(cache.length(sample));
  return cache.read(sample, bytes) && same_bytes(bytes, bytes_of(sample));
}

// The line with which something is refused; empty: it was not.
template <typename Action>
std::string refusal(Action&& action) {
  try {
    action();
  } catch (const flowos::feed::FeedError& error) {
    return error.what();
  }
  return "";
}

inline bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

inline void overwrite(const std::string& path, off_t at, std::string_view bytes) {
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  CHECK(file >= 0);
  CHECK(::pwrite(file, bytes.data(), bytes.size(), at) == static_cast<ssize_t>(bytes.size()));
  ::close(file);
}

inline void flip_byte(const std::string& path, off_t at) {
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  char byte = 0;
  CHECK(file >= 0 && ::pread(file, &byte, 1, at) == 1);
  byte = static_cast<char>(byte ^ 0x10);
  CHECK(::pwrite(file, &byte, 1, at) == 1);
  ::close(file);
}

inline std::vector<std::string> segments_of(const std::string& cache) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(cache)) {
    if (entry.path().extension() == ".seg") paths.push_back(entry.path().string());
  }
  return paths;
}

// What the file system gives for all segments.
inline std::uint64_t segment_bytes_of(const std::string& cache) {
  std::uint64_t bytes = 0;
  for (const std::string& path : segments_of(cache)) {
    struct stat status{};
    CHECK(::stat(path.c_str(), &status) == 0);
    bytes += static_cast<std::uint64_t>(status.st_blocks) * 512;
  }
  return bytes;
}

// As if the machine had been started since.
inline void pretend_a_restart(const std::string& cache) {
  overwrite(cache + "/index", offsetof(flowos::feed::cache::Header, boot), "another");
}

}  // namespace cache_tools
