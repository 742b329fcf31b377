// Pictures to arrays: by libjpeg-turbo, or of pixels that Python decoded.

#include "decode/decoder.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/errors.h"
#include "bind.h"
#include "gil.h"

namespace nb = nanobind;
using flowos::feed::Decoder;
using flowos::feed::ImageSettings;

namespace {

using Bytes = nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Pixels = nb::ndarray<const std::uint8_t, nb::shape<-1, -1, 3>, nb::c_contig, nb::device::cpu>;
using Result = nb::ndarray<std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Channels = std::array<float, 3>;
using Limits = std::array<double, 2>;

ImageSettings::Crop crop_named(const std::string& name) {
  if (name == "centre") return ImageSettings::Crop::centre;
  if (name == "random") return ImageSettings::Crop::random;
  if (name == "none") return ImageSettings::Crop::none;
  throw nb::value_error("crop: centre, random or none");
}

void describe(ImageSettings* at, std::uint32_t height, std::uint32_t width, const std::string& crop,
              double centre_share, const Limits& area, const Limits& aspect, bool flip,
              bool channels_first, bool normalised, const Channels& mean, const Channels& deviation,
              std::uint64_t seed) {
  new (at) ImageSettings{height, width,          crop_named(crop), centre_share, area,      aspect,
                         flip,   channels_first, normalised,       mean,         deviation, seed};
}

template <class Array>
auto bytes_of(const Array& array) {
  return std::as_bytes(std::span(array.data(), array.size()));
}

std::byte* place_for(std::size_t size, const Result& into) {
  if (into.size() != size) {
    const std::string needed = std::to_string(size);
    throw nb::value_error(("into: must have " + needed + " bytes").c_str());
  }
  return reinterpret_cast<std::byte*>(into.data());
}

void decode(const Decoder& decoder, const Bytes& data, std::uint64_t epoch, std::uint64_t sample,
            const Result& into) {
  std::byte* const place = place_for(decoder.size(), into);
  const GilRelease unlocked;
  decoder.decode(bytes_of(data), epoch, sample, place);
}

void fit_pixels(const ImageSettings& settings, const Pixels& pixels, std::uint64_t epoch,
                std::uint64_t sample, const Result& into) {
  const std::size_t channels = std::size_t{3} * (settings.normalised ? sizeof(float) : 1);
  std::byte* const place = place_for(channels * settings.height * settings.width, into);
  const auto height = static_cast<std::uint32_t>(pixels.shape(0));
  const auto width = static_cast<std::uint32_t>(pixels.shape(1));
  const GilRelease unlocked;
  flowos::feed::fit_pixels(settings, bytes_of(pixels), height, width, epoch, sample, place);
}

// JPEG natively, and what is none by its first bytes as flowos.feeder.decode reads it: ImageNet has
// a PNG that is called .JPEG.
class AnyPicture final : public Decoder {
 public:
  explicit AnyPicture(const ImageSettings& settings)
      : settings_(settings), jpeg_(flowos::feed::jpeg_decoder(settings)) {}

  std::size_t size() const override { return jpeg_->size(); }

  void decode(std::span<const std::byte> bytes, std::uint64_t epoch, std::uint64_t sample,
              std::byte* into) const override {
    const bool is_jpeg =
        bytes.size() < 2 || (bytes[0] == std::byte{0xFF} && bytes[1] == std::byte{0xD8});
    if (is_jpeg || !is_by_python(bytes, epoch, sample, into)) {
      jpeg_->decode(bytes, epoch, sample, into);
    }
  }

 private:
  // With the GIL only here, in a thread that holds nothing else. False: it is no picture.
  bool is_by_python(std::span<const std::byte> bytes, std::uint64_t epoch, std::uint64_t sample,
                    std::byte* into) const {
    const nb::gil_scoped_acquire locked;
    try {
      const nb::bytes data(bytes.data(), bytes.size());
      const nb::object found = nb::module_::import_("flowos.feeder.decode").attr("pixels")(data);
      if (found.is_none()) return false;
      const auto pixels = nb::cast<Pixels>(found);
      const auto height = static_cast<std::uint32_t>(pixels.shape(0));
      const auto width = static_cast<std::uint32_t>(pixels.shape(1));
      const GilRelease unlocked;
      flowos::feed::fit_pixels(settings_, bytes_of(pixels), height, width, epoch, sample, into);
      return true;
    } catch (const nb::python_error& error) {
      throw flowos::feed::SampleError(nb::str(error.value()).c_str());
    }
  }

  ImageSettings settings_;
  std::unique_ptr<const Decoder> jpeg_;
};

std::shared_ptr<const Decoder> jpeg_decoder(const ImageSettings& settings) {
  return std::make_shared<AnyPicture>(settings);
}

}  // namespace

void bind_decoder(nb::module_& m) {
  nb::class_<ImageSettings>(m, "ImageSettings", "Crop, size and scaling of decoded pictures.")
      .def("__init__", &describe, nb::kw_only(), nb::arg("height"), nb::arg("width"),
           nb::arg("crop"), nb::arg("centre_share"), nb::arg("area"), nb::arg("aspect"),
           nb::arg("flip"), nb::arg("channels_first"), nb::arg("normalised"), nb::arg("mean"),
           nb::arg("deviation"), nb::arg("seed"), "As of decoder.h; crop: centre, random, none.");
  nb::class_<Decoder>(m, "Decoder", "Decodes the bytes of samples into arrays of one size.")
      .def_prop_ro("size", &Decoder::size, "Bytes of a decoded sample.")
      .def("decode", &decode, nb::arg("data"), nb::arg("epoch"), nb::arg("sample"), nb::arg("into"),
           nb::sig("def decode(self, data: typing_extensions.Buffer, epoch: int, sample: int, "
                   "into: numpy.typing.NDArray[numpy.uint8]) -> None"),
           "Raises SampleError if these bytes are damaged.");
  m.def("jpeg_decoder", &jpeg_decoder, nb::arg("settings"),
        "Raises FeedError if this build has no libjpeg-turbo.");
  m.def(
      "fit_pixels", &fit_pixels, nb::arg("settings"), nb::arg("pixels"), nb::arg("epoch"),
      nb::arg("sample"), nb::arg("into"),
      nb::sig("def fit_pixels(settings: ImageSettings, pixels: numpy.typing.NDArray[numpy.uint8], "
              "epoch: int, sample: int, into: numpy.typing.NDArray[numpy.uint8]) -> None"),
      "Crops and resizes a picture (height, width, 3) that something else decoded.");
}
