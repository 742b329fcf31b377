// The speed of plain C++ that does nothing else: the limit that feeds are compared with.
//
//   limit [--threads 2] [--batches 1000] [--batch-size 32] [--seed 1] read|decode FOLDER LIST
//
// read: threads open, read and close files, shuffled, epoch after epoch, each into its slot in a
// ring of 64 batches; the batches are taken in order. decode: also decodes each JPEG to RGB at its
// full size, by libjpeg, into a buffer that its thread reuses.
// LIST: a line per file, its name below FOLDER and its size, separated by a tab. Prints one line
// of JSON. Exit 77: built without libjpeg.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <mutex>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#ifdef FLOWOS_JPEG
#include <jpeglib.h>
#endif

#include "words.h"

namespace {

using flowos::bench::give_up;

constexpr std::size_t kSlots = 64, kAlignment = 64;
[[maybe_unused]] constexpr int kNotHere = 77;

struct File {
  std::string path;
  std::size_t size;
};

std::vector<File> read_list(const std::string& folder, const std::string& list) {
  std::ifstream lines(list);
  if (!lines) give_up("limit: cannot read " + list);
  std::vector<File> files;
  const std::string below = folder + "/", wrong = "limit: a line without a size in " + list;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t tab = line.find('\t');
    if (tab == std::string::npos) give_up(wrong);
    files.push_back({below + line.substr(0, tab), std::stoul(line.substr(tab + 1))});
  }
  if (files.empty()) give_up("limit: " + list + " names no file");
  return files;
}

std::vector<std::size_t> shuffled(std::size_t files, std::size_t wanted, unsigned seed) {
  std::mt19937_64 random(seed);
  std::vector<std::size_t> epoch(files), order;
  std::iota(epoch.begin(), epoch.end(), 0);
  while (order.size() < wanted) {
    std::shuffle(epoch.begin(), epoch.end(), random);
    order.insert(order.end(), epoch.begin(), epoch.end());
  }
  order.resize(wanted);
  return order;
}

void read_file(const File& file, std::byte* into) {
  const int fd = open(file.path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) give_up("limit: " + file.path + ": " + std::strerror(errno));
  for (std::size_t done = 0; done < file.size;) {
    const ssize_t got = pread(fd, into + done, file.size - done, static_cast<off_t>(done));
    if (got <= 0) give_up("limit: " + file.path + " ends early or cannot be read");
    done += static_cast<std::size_t>(got);
  }
  close(fd);
}

#ifdef FLOWOS_JPEG
void decode(const std::byte* bytes, std::size_t size, std::vector<JSAMPLE>& pixels) {
  jpeg_decompress_struct picture{};
  jpeg_error_mgr errors{};
  picture.err = jpeg_std_error(&errors);  // exits with its message
  jpeg_create_decompress(&picture);
  jpeg_mem_src(&picture, reinterpret_cast<const unsigned char*>(bytes), size);
  jpeg_read_header(&picture, TRUE);
  picture.out_color_space = JCS_RGB;
  jpeg_start_decompress(&picture);
  const std::size_t row = std::size_t{3} * picture.output_width;
  pixels.resize(row * picture.output_height);
  while (picture.output_scanline < picture.output_height) {
    JSAMPROW at = pixels.data() + row * picture.output_scanline;
    jpeg_read_scanlines(&picture, &at, 1);
  }
  jpeg_finish_decompress(&picture);
  jpeg_destroy_decompress(&picture);
}
#endif

// A ring of batches: threads fill them, one takes them in order.
class Ring {
 public:
  Ring(std::vector<File> files, std::vector<std::size_t> order, std::size_t batch_size,
       bool decodes)
      : files_(std::move(files)),
        order_(std::move(order)),
        batch_size_(batch_size),
        decodes_(decodes),
        missing_(kSlots) {
    std::size_t most = 0;
    for (const File& file : files_) most = std::max(most, file.size);
    place_bytes_ = (most + kAlignment - 1) / kAlignment * kAlignment;
    for (std::size_t i = 0; i < kSlots; ++i) {
      slots_.emplace_back(new std::byte[place_bytes_ * batch_size_]);
      missing_[i] = batch_size_;
    }
  }

  void fill() {
    std::vector<unsigned char> pixels;
    for (std::size_t i = next_++; i < order_.size(); i = next_++) {
      const std::size_t batch = i / batch_size_, slot = batch % kSlots;
      {
        std::unique_lock<std::mutex> hold(lock_);
        freed_.wait(hold, [&] { return batch < taken_ + kSlots; });
      }
      const File& file = files_[order_[i]];
      std::byte* place = slots_[slot].get() + place_bytes_ * (i % batch_size_);
      read_file(file, place);
#ifdef FLOWOS_JPEG
      if (decodes_) decode(place, file.size, pixels);
#endif
      bytes_ += file.size;
      if (--missing_[slot] == 0) {
        const std::lock_guard<std::mutex> guard(lock_);
        filled_.notify_one();
      }
    }
  }

  void take(std::size_t batch) {
    std::unique_lock<std::mutex> hold(lock_);
    filled_.wait(hold, [&] { return missing_[batch % kSlots] == 0; });
    missing_[batch % kSlots] = batch_size_;
    taken_ = batch + 1;
    freed_.notify_all();
  }

  std::uint64_t bytes() const { return bytes_; }

 private:
  const std::vector<File> files_;
  const std::vector<std::size_t> order_;
  const std::size_t batch_size_;
  const bool decodes_;
  std::size_t place_bytes_ = 0;
  std::vector<std::unique_ptr<std::byte[]>> slots_;
  std::vector<std::atomic<std::size_t>> missing_;
  std::atomic<std::size_t> next_{0};
  std::atomic<std::uint64_t> bytes_{0};
  std::mutex lock_;
  std::condition_variable filled_, freed_;
  std::size_t taken_ = 0;
};

double seconds_since(std::chrono::steady_clock::time_point began) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

}  // namespace

int main(int count, char** words) {
  const flowos::bench::Words asked(
      count, words, {{"threads", 2}, {"batches", 1000}, {"batch-size", 32}, {"seed", 1}}, 3,
      "limit [--threads 2] [--batches 1000] [--batch-size 32] [--seed 1] read|decode FOLDER LIST");
  const bool decodes = asked[0] == "decode";
  if (!decodes && asked[0] != "read") give_up("limit: 'read' or 'decode', not '" + asked[0] + "'");
#ifndef FLOWOS_JPEG
  if (decodes) {
    std::cerr << "limit: built without libjpeg\n";
    return kNotHere;
  }
#endif
  const auto size = std::max<std::size_t>(1, static_cast<std::size_t>(asked.number("batch-size")));
  const auto batches = static_cast<std::size_t>(asked.number("batches"));
  const auto threads = std::max<std::size_t>(1, static_cast<std::size_t>(asked.number("threads")));
  std::vector<File> files = read_list(asked[1], asked[2]);
  std::vector<std::size_t> order =
      shuffled(files.size(), size * batches, static_cast<unsigned>(asked.number("seed")));
  Ring ring(std::move(files), std::move(order), size, decodes);
  const auto began = std::chrono::steady_clock::now();
  std::vector<std::thread> all;
  all.reserve(threads);
  for (std::size_t i = 0; i < threads; ++i) all.emplace_back([&ring] { ring.fill(); });
  double first = 0;
  for (std::size_t batch = 0; batch < batches; ++batch) {
    ring.take(batch);
    if (batch == 0) first = seconds_since(began);
  }
  const double seconds = seconds_since(began);
  for (std::thread& thread : all) thread.join();
  std::printf("{\"seconds\": %.6f, \"first_seconds\": %.6f, \"batches\": %zu, \"bytes\": %llu}\n",
              seconds, first, batches, static_cast<unsigned long long>(ring.bytes()));
  return 0;
}
