#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/errors.h"
#include "bytes.h"
#include "cache/cache.h"
#include "catalog/catalog.h"
#include "catalog/order.h"
#include "check.h"
#include "pipeline/feeder.h"
#include "source/files.h"

// What the feeder's tests share: a data set of real files, whose bytes follow from their number.
namespace feeding {

namespace feed = flowos::feed;

class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "flowos-feeder-XXXXXX").string();
    CHECK(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string at(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

inline std::vector<std::byte> bytes_of(std::uint64_t sample, std::size_t size) {
  std::vector<std::byte> bytes(size);
  std::uint64_t state = sample * 0x9e3779b97f4a7c15 + 1;
  for (std::byte& byte : bytes) {
    state = state * 6364136223846793005 + 1442695040888963407;
    byte = static_cast<std::byte>(state >> 56);
  }
  return bytes;
}

// `size_of` says how large each is. Samples are numbered as their names sort.
template <typename SizeOf>
std::vector<std::vector<std::byte>> write_samples(const std::string& root, std::uint64_t count,
                                                  SizeOf size_of) {
  std::filesystem::create_directories(root);
  std::vector<std::vector<std::byte>> samples;
  for (std::uint64_t sample = 0; sample < count; ++sample) {
    samples.push_back(bytes_of(sample, size_of(sample)));
    const std::string number = std::to_string(100000 + sample);
    std::ofstream file(std::filesystem::path(root) / number, std::ios::binary);
    file.write(reinterpret_cast<const char*>(samples.back().data()),
               static_cast<std::streamsize>(samples.back().size()));
    CHECK(file.good());
  }
  return samples;
}

struct DataSet {
  std::string root;
  std::vector<std::vector<std::byte>> samples;
  std::shared_ptr<const feed::Catalog> catalog;
  std::shared_ptr<const feed::Files> files;
};

template <typename SizeOf>
DataSet make_data_set(const std::string& root, std::uint64_t count, SizeOf size_of) {
  DataSet data;
  data.root = root;
  data.samples = write_samples(root, count, size_of);
  feed::Progress progress;
  data.catalog = std::make_shared<const feed::Catalog>(feed::list_folder(root, 4, progress));
  CHECK(data.catalog->count() == count);
  data.files = std::make_shared<const feed::Files>(root, data.catalog);
  return data;
}

inline std::size_t usual_size(std::uint64_t sample) { return 500 + sample * 37 % 3000; }

inline std::shared_ptr<feed::Cache> make_cache(const std::string& folder, const DataSet& data) {
  return std::make_shared<feed::Cache>(folder, data.catalog->cache_key(), data.catalog->count(),
                                       feed::Cache::Limits{.segment_bytes = 1 << 20});
}

inline std::span<const std::byte> bytes_in(const feed::Batch& batch, std::size_t slot) {
  return {batch.arena.data() + batch.offsets[slot], static_cast<std::size_t>(batch.lengths[slot])};
}

// Every sample of the batch is what the order says, and its bytes are its own.
inline void check_batch(const feed::Batch& batch, const DataSet& data, const feed::Order& order,
                        const feed::Share& share) {
  CHECK(batch.samples.size() == share.size_of(batch.number));
  CHECK(batch.offsets.size() == batch.samples.size());
  CHECK(batch.lengths.size() == batch.samples.size());
  for (std::uint32_t slot = 0; slot < batch.samples.size(); ++slot) {
    const std::uint64_t sample = order.at(batch.epoch, share.position(batch.number, slot));
    CHECK(batch.samples[slot] == static_cast<std::int64_t>(sample));
    CHECK(same_bytes(bytes_in(batch, slot), data.samples[sample]));
    CHECK(static_cast<std::size_t>(batch.offsets[slot] + batch.lengths[slot]) <= batch.used_bytes);
  }
}

// A whole epoch, or what is left of it; how many batches it had.
inline std::uint64_t check_epoch(feed::Feeder& feeder, const DataSet& data,
                                 const feed::FeederSettings& settings, std::uint64_t epoch,
                                 std::uint64_t start = 0) {
  feed::Share share = settings.share;
  share.count = data.catalog->count();
  share.start = start;
  const feed::Order order(share.count, settings.seed, settings.shuffle);
  feeder.seek(epoch, start);
  std::uint64_t batches = 0;
  while (const auto batch = feeder.next()) {
    CHECK(batch->epoch == epoch);
    CHECK(batch->number == batches);
    check_batch(*batch, data, order, share);
    ++batches;
  }
  CHECK(batches == share.batches());
  return batches;
}

template <typename Error>
std::string complaint_of(feed::Feeder& feeder) {
  try {
    while (feeder.next()) {
    }
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

}  // namespace feeding
