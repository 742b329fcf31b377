// JPEG: decoding a part equals that part of the whole, and invalid bytes are harmless.

#include <cstdio>  // jpeglib.h needs it

#if __has_include(<jpeglib.h>)

#include <jpeglib.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/errors.h"
#include "check.h"
#include "decode/crop.h"
#include "decode/decoder.h"
#include "pictures.h"

using flowos::feed::Decoder;
using flowos::feed::Draws;
using flowos::feed::FeedError;
using flowos::feed::fit_pixels;
using flowos::feed::ImageSettings;
using flowos::feed::jpeg_decoder;
using flowos::feed::SampleError;

namespace {

using Bytes = std::vector<std::uint8_t>;

struct Coding {
  const char* name;
  J_COLOR_SPACE from, space;
  int across, down;  // luma samples per chroma sample
  bool progressive;
  unsigned restart;  // MCUs
};

constexpr Coding usual{"4:2:0", JCS_RGB, JCS_YCbCr, 2, 2, false, 0};
constexpr Coding codings[] = {
    usual,
    {"4:2:2", JCS_RGB, JCS_YCbCr, 2, 1, false, 0},
    {"4:4:4", JCS_RGB, JCS_YCbCr, 1, 1, false, 0},
    {"4:4:0", JCS_RGB, JCS_YCbCr, 1, 2, false, 0},
    {"4:1:1", JCS_RGB, JCS_YCbCr, 4, 1, false, 0},
    {"4:2:0 progressive", JCS_RGB, JCS_YCbCr, 2, 2, true, 0},
    {"4:2:0 with restarts", JCS_RGB, JCS_YCbCr, 2, 2, false, 3},
    {"RGB", JCS_RGB, JCS_RGB, 1, 1, false, 0},
    {"grey", JCS_GRAYSCALE, JCS_GRAYSCALE, 1, 1, false, 0},
    {"CMYK", JCS_CMYK, JCS_CMYK, 1, 1, false, 0},
    {"YCCK", JCS_CMYK, JCS_YCCK, 2, 2, false, 0},
};

// The picture's values are taken as they lie for any number of components.
Bytes encoded(const Picture& picture, const Coding& coding,
              std::span<const jpeg_scan_info> scans = {}) {
  jpeg_compress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* out = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&jpeg, &out, &size);
  const int components = coding.from == JCS_GRAYSCALE ? 1 : coding.from == JCS_CMYK ? 4 : 3;
  jpeg.image_width = picture.width;
  jpeg.image_height = picture.height;
  jpeg.input_components = components;
  jpeg.in_color_space = coding.from;
  jpeg_set_defaults(&jpeg);
  jpeg_set_colorspace(&jpeg, coding.space);
  jpeg_set_quality(&jpeg, 85, TRUE);
  jpeg.comp_info[0].h_samp_factor = coding.across;
  jpeg.comp_info[0].v_samp_factor = coding.down;
  if (coding.space == JCS_YCCK) {
    jpeg.comp_info[3].h_samp_factor = coding.across;
    jpeg.comp_info[3].v_samp_factor = coding.down;
  }
  jpeg.restart_interval = coding.restart;
  if (coding.progressive) jpeg_simple_progression(&jpeg);
  if (!scans.empty()) {
    jpeg.scan_info = scans.data();
    jpeg.num_scans = static_cast<int>(scans.size());
  }
  jpeg_start_compress(&jpeg, TRUE);
  Bytes row(std::size_t{4} * picture.width);
  while (jpeg.next_scanline < picture.height) {
    std::memcpy(row.data(), &picture.pixels[std::size_t{3} * picture.width * jpeg.next_scanline],
                std::size_t{3} * picture.width);
    JSAMPROW at = row.data();
    jpeg_write_scanlines(&jpeg, &at, 1);
  }
  jpeg_finish_compress(&jpeg);
  Bytes bytes(out, out + size);
  jpeg_destroy_compress(&jpeg);
  std::free(out);
  return bytes;
}

Bytes decoded(const Bytes& bytes, const ImageSettings& settings) {
  const auto decoder = jpeg_decoder(settings);
  Bytes result(decoder->size());
  decoder->decode(std::as_bytes(std::span(bytes)), 1, 2,
                  reinterpret_cast<std::byte*>(result.data()));
  return result;
}

// What is wrong with the bytes; empty: nothing.
std::string complaint(const Bytes& bytes, const ImageSettings& settings) {
  try {
    decoded(bytes, settings);
  } catch (const SampleError& error) {
    return error.what();
  }
  return "";
}

ImageSettings whole(std::uint32_t height, std::uint32_t width) {
  ImageSettings settings;
  settings.height = height;
  settings.width = width;
  settings.crop = ImageSettings::Crop::none;
  return settings;
}

// With small crops too, at any place: their edges are where upsampling lacks neighbours.
ImageSettings small_crops() {
  ImageSettings settings = whole(19, 27);
  settings.crop = ImageSettings::Crop::random;
  settings.area = {0.00001, 1.0};
  settings.flip = true;
  return settings;
}

void a_part_is_that_part_of_the_whole(const Coding& coding, std::uint32_t height,
                                      std::uint32_t width) {
  const Picture picture = noise(height, width, 1);
  const Bytes bytes = encoded(picture, coding);
  const Bytes pixels = decoded(bytes, whole(height, width));
  ImageSettings settings = small_crops();
  for (settings.seed = 0; settings.seed < 150; ++settings.seed) {
    if (settings.seed == 100) settings.crop = ImageSettings::Crop::centre;
    const Bytes part = decoded(bytes, settings);
    Bytes expected(part.size());
    fit_pixels(settings, std::as_bytes(std::span(pixels)), height, width, 1, 2,
               reinterpret_cast<std::byte*>(expected.data()));
    if (part != expected) std::cerr << coding.name << ", seed " << settings.seed << '\n';
    CHECK(part == expected);
  }
}

void truncated_files_are_errors() {
  for (const Coding& coding : codings) {
    const Bytes bytes = encoded(slopes(200, 64, 2), coding);
    for (std::size_t size = 0; size < bytes.size(); size += 1 + bytes.size() / 97) {
      const Bytes part(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
      CHECK(!complaint(part, whole(32, 32)).empty());
      ImageSettings settings = small_crops();  // also where their end is not needed
      for (settings.seed = 0; settings.seed < 5; ++settings.seed) {
        CHECK(!complaint(part, settings).empty());
      }
    }
  }
}

// Some damage cannot be detected; none may crash, and some must be reported.
void damaged_files_do_no_harm() {
  Draws draws(3);
  int told = 0;
  for (const Coding& coding : codings) {
    const Bytes bytes = encoded(slopes(40, 56, 4), coding);
    for (int round = 0; round < 60; ++round) {
      Bytes damaged = bytes;
      for (int i = 0; i < 4; ++i) {
        damaged[draws.below(static_cast<std::uint32_t>(bytes.size()))] =
            static_cast<std::uint8_t>(draws.below(256));
      }
      told += complaint(damaged, round % 2 == 0 ? whole(16, 16) : small_crops()).empty() ? 0 : 1;
    }
  }
  CHECK(told > 200);
}

void what_follows_the_end_does_not_matter() {
  Bytes bytes = encoded(slopes(40, 56, 5), usual);
  const Bytes clean = decoded(bytes, whole(40, 56));
  bytes.insert(bytes.end(), 1000, 7);
  CHECK(decoded(bytes, whole(40, 56)) == clean);
  CHECK(complaint(bytes, small_crops()).empty());
}

void other_bytes_are_told_as_such() {
  CHECK(complaint({}, whole(8, 8)) == "Empty input file");
  const std::string png = "\x89PNG\r\n\x1a\n, and so on";
  CHECK(complaint({png.begin(), png.end()}, whole(8, 8)).starts_with("Not a JPEG file"));
}

// The size that the header gives is changed; the bytes stay few.
Bytes claiming(Bytes bytes, std::uint16_t height, std::uint16_t width, bool progressive) {
  std::size_t frame = 2;
  while (bytes.at(frame + 1) != (progressive ? 0xC2 : 0xC0)) {
    frame += std::size_t{2} + std::size_t{256} * bytes.at(frame + 2) + bytes.at(frame + 3);
  }
  bytes.at(frame + 5) = static_cast<std::uint8_t>(height >> 8);
  bytes.at(frame + 6) = static_cast<std::uint8_t>(height & 255);
  bytes.at(frame + 7) = static_cast<std::uint8_t>(width >> 8);
  bytes.at(frame + 8) = static_cast<std::uint8_t>(width & 255);
  return bytes;
}

void sizes_that_are_claimed_take_no_memory() {
  for (const bool progressive : {false, true}) {
    Coding coding = usual;
    coding.progressive = progressive;
    const Bytes bytes = encoded(slopes(40, 56, 6), coding);
    const std::string why = complaint(claiming(bytes, 65500, 65500, progressive), whole(8, 8));
    CHECK(why == "65500 x 65500 pixels: more than 178956970 are refused");
    CHECK(!complaint(claiming(bytes, 0, 100, progressive), whole(8, 8)).empty());
    CHECK(!complaint(claiming(bytes, 1000, 60000, progressive), whole(8, 8)).empty());
  }
}

// The last scan again and again, which is allowed: it refines nothing.
void thousands_of_scans_are_refused() {
  constexpr jpeg_scan_info scans[] = {{1, {0}, 0, 0, 0, 0}, {1, {0}, 1, 63, 0, 0}};
  Coding grey = usual;
  grey.from = grey.space = JCS_GRAYSCALE;
  grey.across = grey.down = 1;
  Bytes bytes = encoded(slopes(16, 16, 7), grey, scans);
  std::size_t scan = bytes.size() - 1;
  while (bytes[scan - 1] != 0xFF || bytes[scan] != 0xDA) --scan;
  const Bytes last(bytes.begin() + static_cast<std::ptrdiff_t>(scan) - 1, bytes.end() - 2);
  for (int i = 0; i < 400; ++i) bytes.insert(bytes.end() - 2, last.begin(), last.end());
  CHECK(complaint(bytes, whole(8, 8)).empty());
  for (int i = 0; i < 200; ++i) bytes.insert(bytes.end() - 2, last.begin(), last.end());
  CHECK(complaint(bytes, whole(8, 8)) == "more than 500 scans");
}

void every_size_down_to_one_pixel_can_be_decoded() {
  for (const Coding& coding : codings) {
    for (std::uint32_t side = 1; side < 20; ++side) {
      const Bytes bytes = encoded(slopes(side, 21 - side, side), coding);
      CHECK(complaint(bytes, whole(5, 7)).empty());
      CHECK(complaint(bytes, small_crops()).empty());
    }
  }
}

void many_threads_may_share_a_decoder(const Coding& coding) {
  const Bytes bytes = encoded(slopes(90, 120, 8), coding);
  const std::unique_ptr<const Decoder> decoder = jpeg_decoder(small_crops());
  const auto decode_all = [&](Bytes& results) {
    results.resize(50 * decoder->size());
    for (std::uint64_t sample = 0; sample < 50; ++sample) {
      decoder->decode(std::as_bytes(std::span(bytes)), 0, sample,
                      reinterpret_cast<std::byte*>(&results[sample * decoder->size()]));
    }
  };
  Bytes expected;
  decode_all(expected);
  std::vector<Bytes> results(4);
  std::vector<std::thread> threads;
  threads.reserve(results.size());
  for (Bytes& of_thread : results) threads.emplace_back(decode_all, std::ref(of_thread));
  for (std::thread& thread : threads) thread.join();
  for (const Bytes& of_thread : results) CHECK(of_thread == expected);
}

}  // namespace

int main() {
  try {
    jpeg_decoder(whole(8, 8));
  } catch (const FeedError& error) {
    std::cerr << "skipped: " << error.what() << '\n';
    return 77;
  }
  for (const Coding& coding : codings) many_threads_may_share_a_decoder(coding);
  if (kUnderTsan) return 0;  // all that follows is of one thread, also within the library
  for (const Coding& coding : codings) {
    a_part_is_that_part_of_the_whole(coding, 150, 203);
    a_part_is_that_part_of_the_whole(coding, 64, 64);
  }
  truncated_files_are_errors();
  damaged_files_do_no_harm();
  what_follows_the_end_does_not_matter();
  other_bytes_are_told_as_such();
  sizes_that_are_claimed_take_no_memory();
  thousands_of_scans_are_refused();
  every_size_down_to_one_pixel_can_be_decoded();
}

#else

#include <iostream>

int main() {
  std::cerr << "skipped: no libjpeg-turbo\n";
  return 77;
}

#endif
