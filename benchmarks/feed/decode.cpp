// Decodes JPEGs that are in memory, one after the other, in one thread.
//
//   decode [--files 400] [--round 0] FOLDER LIST
//
// Each decoder takes all files once; which one is first changes with the round. LIST: as for
// limit. Prints one line of JSON: for each decoder, CPU seconds per picture and a checksum of
// the results.
// clang-format off: jpeglib.h needs cstdio
#include <cstdio>
#include <jpeglib.h>
// clang-format on
#include <time.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "decode/decoder.h"
#include "words.h"

namespace {

using flowos::bench::give_up;
using flowos::feed::Decoder;
using flowos::feed::ImageSettings;
using flowos::feed::jpeg_decoder;

using Bytes = std::vector<char>;
using Way = std::function<std::uint64_t(const Bytes&)>;

std::vector<Bytes> read_files(const std::string& folder, const std::string& list,
                              std::size_t most) {
  std::ifstream lines(list);
  if (!lines) give_up("decode: cannot read " + list);
  std::vector<Bytes> files;
  for (std::string line; files.size() < most && std::getline(lines, line);) {
    std::ifstream file(folder + "/" + line.substr(0, line.find('\t')), std::ios::binary);
    files.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    if (files.back().empty()) give_up("decode: cannot read " + line);
  }
  return files;
}

// All pixels by libjpeg only: the bound for all decoders.
std::uint64_t decode_only(const Bytes& bytes) {
  static std::vector<JSAMPLE> row;
  std::uint64_t sum = 0;
  jpeg_decompress_struct picture{};
  jpeg_error_mgr errors{};
  picture.err = jpeg_std_error(&errors);  // exits with its message
  jpeg_create_decompress(&picture);
  jpeg_mem_src(&picture, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  jpeg_read_header(&picture, TRUE);
  picture.out_color_space = JCS_RGB;
  jpeg_start_decompress(&picture);
  row.resize(std::size_t{3} * picture.output_width);
  while (picture.output_scanline < picture.output_height) {
    JSAMPROW at = row.data();
    jpeg_read_scanlines(&picture, &at, 1);
    sum += row[row.size() / 2];
  }
  jpeg_finish_decompress(&picture);
  jpeg_destroy_decompress(&picture);
  return sum;
}

Way ours(ImageSettings::Crop crop, bool for_torch = false) {
  ImageSettings settings;
  settings.crop = crop;
  settings.flip = crop == ImageSettings::Crop::random;
  settings.channels_first = settings.normalised = for_torch;
  const std::shared_ptr<const Decoder> decoder = jpeg_decoder(settings);
  const auto result = std::make_shared<std::vector<std::byte>>(decoder->size());
  return [decoder, result, sample = std::uint64_t{0}](const Bytes& bytes) mutable {
    decoder->decode(std::as_bytes(std::span(bytes)), 0, sample++, result->data());
    return static_cast<std::uint64_t>((*result)[result->size() / 2]);
  };
}

struct Contestant {
  const char* name;
  Way way;
  double seconds = 0.0;
  std::uint64_t checksum = 0;
};

// CPU time, so that other processes do not count.
double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void run(Contestant& contestant, const std::vector<Bytes>& files) {
  const double began = cpu_seconds();
  for (const Bytes& file : files) contestant.checksum += contestant.way(file);
  contestant.seconds = (cpu_seconds() - began) / static_cast<double>(files.size());
}

}  // namespace

int main(int count, char** words) {
  const flowos::bench::Words asked(count, words, {{"files", 400}, {"round", 0}}, 2,
                                   "decode [--files 400] [--round 0] FOLDER LIST");
  const auto files =
      read_files(asked[0], asked[1], static_cast<std::size_t>(asked.number("files")));
  if (files.empty()) give_up("decode: " + asked[1] + " names no file");
  std::vector<Contestant> all = {
      {"decode only", decode_only},
      {"whole picture to 224", ours(ImageSettings::Crop::none)},
      {"centre crop to 224", ours(ImageSettings::Crop::centre)},
      {"random crop to 224", ours(ImageSettings::Crop::random)},
      {"whole picture to 224, float32 NCHW", ours(ImageSettings::Crop::none, true)},
  };
  const auto first = static_cast<std::size_t>(asked.number("round")) % all.size();
  for (std::size_t i = 0; i < all.size(); ++i) run(all[(first + i) % all.size()], files);
  const char* before = "{";
  for (const Contestant& c : all) {
    std::printf("%s\"%s\": {\"seconds\": %.9f, \"checksum\": %llu}", before, c.name, c.seconds,
                static_cast<unsigned long long>(c.checksum));
    before = ", ";
  }
  std::printf("}\n");
  return 0;
}
