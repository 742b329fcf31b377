// JPEG pictures: libjpeg-turbo decodes the rows and columns that are needed, each row is resized as
// it comes. Pictures are shown as they are stored: an orientation in Exif is not followed, as
// Pillow's and torchvision's loaders do not.

#include <cstddef>
#include <cstdint>
#include <cstdio>  // jpeglib.h needs it
#include <memory>
#include <span>

#include "base/errors.h"
#include "decode/decoder.h"

#ifdef FLOWOS_JPEG

#include <jpeglib.h>
// After jpeglib.h, which it needs.
#include <jerror.h>

#include <algorithm>
#include <csetjmp>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "decode/crop.h"
#include "decode/pixels.h"
#include "decode/resize.h"

#ifndef LIBJPEG_TURBO_VERSION
#error "This jpeglib.h is not libjpeg-turbo's: install libjpeg62-turbo-dev, or build without JPEG"
#endif

namespace flowos::feed {
namespace {

// Larger pictures are refused, as Pillow does; a progressive one then takes at most 1 GiB.
constexpr std::uint64_t max_pixels = 178956970;
// A file of 64 KB can have thousands, each of which goes over the whole picture.
constexpr int max_scans = 500;
// Upsampling looks at neighbours, which columns at the edge of a crop do not have; and crops of one
// or two samples are upsampled in another way.
constexpr std::uint32_t margin = 8;

// A picture that is decoded; all of libjpeg's memory goes with it.
class Session {
 public:
  Session();
  ~Session() { jpeg_destroy_decompress(&jpeg); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Runs `step`, in which libjpeg may find damage: SampleError. The step must make nothing that
  // has a destructor, because libjpeg jumps out of it.
  template <class Step>
  void guarded(const Step& step) {
    if (setjmp(back_) != 0) throw SampleError(words_);
    step();
  }

  jpeg_decompress_struct jpeg{};

 private:
  static Session& of(j_common_ptr common) { return *static_cast<Session*>(common->client_data); }
  static void fail(j_common_ptr common);
  static void warn(j_common_ptr common, int level);
  static void look_at_progress(j_common_ptr common);

  jpeg_error_mgr errors_{};
  jpeg_progress_mgr progress_{};
  std::jmp_buf back_{};
  char words_[JMSG_LENGTH_MAX] = "";
};

Session::Session() {
  jpeg.err = jpeg_std_error(&errors_);
  jpeg.client_data = this;
  errors_.error_exit = fail;
  errors_.emit_message = warn;
  progress_.progress_monitor = look_at_progress;
  guarded([&] { jpeg_create_decompress(&jpeg); });
  jpeg.progress = &progress_;
}

void Session::fail(j_common_ptr common) {
  Session& session = of(common);
  session.errors_.format_message(common, session.words_);
  std::longjmp(session.back_, 1);
}

// What libjpeg warns of is damage: it would go on with grey. Except of a new revision of JFIF.
void Session::warn(j_common_ptr common, int level) {
  if (level < 0 && common->err->msg_code != JWRN_JFIF_MAJOR) fail(common);
}

void Session::look_at_progress(j_common_ptr common) {
  if (reinterpret_cast<j_decompress_ptr>(common)->input_scan_number <= max_scans) return;
  Session& session = of(common);
  std::snprintf(session.words_, sizeof session.words_, "more than %d scans", max_scans);
  std::longjmp(session.back_, 1);
}

void read_header(Session& session, std::span<const std::byte> bytes) {
  jpeg_decompress_struct& jpeg = session.jpeg;
  session.guarded([&] {
    jpeg_mem_src(&jpeg, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
    jpeg_read_header(&jpeg, TRUE);
  });
  const std::uint64_t pixels = std::uint64_t{jpeg.image_width} * jpeg.image_height;
  if (pixels > max_pixels) {
    throw SampleError(std::to_string(jpeg.image_width) + " x " + std::to_string(jpeg.image_height) +
                      " pixels: more than " + std::to_string(max_pixels) + " are refused");
  }
  if (jpeg.num_components == 2 || jpeg.num_components > 4) {
    throw SampleError(std::to_string(jpeg.num_components) +
                      " components: neither grey, RGB nor CMYK");
  }
  jpeg.out_color_space = jpeg.num_components == 4 ? JCS_CMYK : JCS_RGB;
}

// Adobe's CMYK, which has white at 255, to RGB in place: colour * black / 255, rounded.
void to_rgb(std::uint8_t* row, std::size_t pixels) {
  for (std::size_t pixel = 0; pixel < pixels; ++pixel) {
    const std::uint8_t* cmyk = row + 4 * pixel;
    const unsigned black = cmyk[3];
    for (std::size_t channel = 0; channel < 3; ++channel) {
      const unsigned product = (255U - cmyk[channel]) * black + 128U;
      row[3 * pixel + channel] =
          static_cast<std::uint8_t>(black - ((product + (product >> 8)) >> 8));
    }
  }
}

// Columns that libjpeg is asked for, in which those that are needed begin at `offset`.
struct Columns {
  JDIMENSION begin, count, offset;
};

// Before jpeg_start_decompress.
Columns with_margins(const Weights& needed, std::uint32_t width) {
  const std::uint32_t begin = needed.begin - std::min(needed.begin, margin);
  const std::uint32_t end = std::min(needed.end + margin, width);
  return {begin, end - begin, 0};
}

// Whether the file goes on to its end marker, where what comes before it is not needed.
bool ends_well(const jpeg_decompress_struct& jpeg) {
  if (jpeg.unread_marker == JPEG_EOI) return true;
  const std::string_view rest(reinterpret_cast<const char*>(jpeg.src->next_input_byte),
                              jpeg.src->bytes_in_buffer);
  return rest.rfind("\xFF\xD9") != std::string_view::npos;
}

void finish(Session& session) {
  jpeg_decompress_struct& jpeg = session.jpeg;
  if (jpeg.output_scanline == jpeg.output_height) {
    session.guarded([&] { jpeg_finish_decompress(&jpeg); });
  } else if (!jpeg_input_complete(&jpeg) && !ends_well(jpeg)) {
    throw SampleError("Premature end of JPEG file");
  }
}

class JpegDecoder final : public Decoder {
 public:
  explicit JpegDecoder(const ImageSettings& settings) : settings_(settings), layout_(settings) {}

  std::size_t size() const override { return layout_.size(); }
  void decode(std::span<const std::byte> bytes, std::uint64_t epoch, std::uint64_t sample,
              std::byte* into) const override;

 private:
  ImageSettings settings_;
  Layout layout_;
};

void JpegDecoder::decode(std::span<const std::byte> bytes, std::uint64_t epoch,
                         std::uint64_t sample, std::byte* into) const {
  Session session;
  read_header(session, bytes);
  jpeg_decompress_struct& jpeg = session.jpeg;
  const std::uint32_t width = jpeg.image_width;
  Fitter fitter(layout_, region_of(settings_, jpeg.image_height, width, epoch, sample), into);
  const Weights& needed = fitter.columns();
  Columns columns = with_margins(needed, width);
  const std::size_t channels = jpeg.num_components == 4 ? 4 : 3;
  std::vector<std::uint8_t> row;
  session.guarded([&] {
    jpeg_start_decompress(&jpeg);
    if (columns.count < width) jpeg_crop_scanline(&jpeg, &columns.begin, &columns.count);
  });
  columns.offset = 3 * (needed.begin - columns.begin);
  row.resize(std::max(channels * columns.count, columns.offset + needed.row_room()));
  session.guarded([&] {
    if (fitter.rows().begin > 0) jpeg_skip_scanlines(&jpeg, fitter.rows().begin);
    while (jpeg.output_scanline < fitter.rows().end) {
      JSAMPROW at = row.data();
      jpeg_read_scanlines(&jpeg, &at, 1);
      if (channels == 4) to_rgb(at, columns.count);
      fitter.take(at + columns.offset);
    }
  });
  finish(session);
}

}  // namespace

std::unique_ptr<const Decoder> jpeg_decoder(const ImageSettings& settings) {
  return std::make_unique<JpegDecoder>(settings);
}

}  // namespace flowos::feed

#else

namespace flowos::feed {

std::unique_ptr<const Decoder> jpeg_decoder(const ImageSettings&) {
  throw FeedError(
      "fo.decode.jpeg: FlowOS was built without libjpeg-turbo; install libjpeg62-turbo-dev and "
      "build it again");
}

}  // namespace flowos::feed

#endif
