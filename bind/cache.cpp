// The cache of samples on this node's storage.

#include "cache/cache.h"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "base/progress.h"
#include "bind.h"
#include "gil.h"
#include "lent.h"
#include "watched.h"

namespace nb = nanobind;
using flowos::feed::Cache;
using flowos::feed::CacheState;
using flowos::feed::Progress;

namespace {

using Unlocked = nb::call_guard<GilRelease>;

void attach(Cache* at, const std::filesystem::path& folder, std::uint64_t fingerprint,
            std::uint64_t samples, std::uint64_t max_bytes, std::uint64_t min_free_bytes,
            std::uint64_t segment_bytes, const std::filesystem::path& neighbours) {
  new (at) Cache(folder.native(), fingerprint, samples,
                 {max_bytes, min_free_bytes, segment_bytes, neighbours.native()});
}

std::uint64_t verify(const std::filesystem::path& folder, Progress* done) {
  return watched(done,
                 [&](Progress& progress) { return Cache::verify(folder.native(), progress); });
}

// A path may be any bytes: it comes as os.fsencode has it.
template <auto kFunction>
auto of_folder(const std::filesystem::path& folder) {
  return kFunction(folder.native());
}

// Nothing: it is not here, or not any more.
std::optional<nb::bytes> bytes_of(Cache& cache, std::uint64_t sample) {
  if (!cache.has(sample)) return std::nullopt;
  std::vector<std::byte> bytes;
  bool right = false;
  {
    const GilRelease unlocked;
    bytes.resize(cache.length(sample));
    right = cache.read(sample, bytes);
    if (!right) cache.abandon(sample);
  }
  if (!right) return std::nullopt;
  return nb::bytes(bytes.data(), bytes.size());
}

// False: there is no room for more. What is here already, or fetched by others, stays as it is.
bool offer(Cache& cache, std::uint64_t sample, nb::handle data) {
  const Lent lent(data);
  const GilRelease unlocked;
  const Cache::Claim claim = cache.claim(sample);
  if (claim == Cache::Claim::ours) cache.publish(sample, lent.bytes());
  return claim != Cache::Claim::full;
}

}  // namespace

void bind_cache(nb::module_& m) {
  nb::class_<CacheState>(m, "CacheState", "State of a cache, read without attaching to it.")
      .def_ro("samples", &CacheState::samples, "Samples of the data set.")
      .def_ro("cached", &CacheState::cached, "How many of them are cached here.")
      .def_ro("bytes", &CacheState::bytes, "Bytes that they take.")
      .def_ro("unverified", &CacheState::unverified,
              "Written before the last start of the machine, not read since.")
      .def_ro("processes", &CacheState::processes, "Processes that are attached now.");
  nb::class_<Cache>(m, "Cache", "Samples on the storage of this node, shared by its processes.")
      .def("__init__", &attach, nb::arg("folder"), nb::arg("fingerprint"), nb::arg("samples"),
           nb::arg("max_bytes") = 0, nb::arg("min_free_bytes") = std::uint64_t{1} << 30,
           nb::arg("segment_bytes") = std::uint64_t{256} << 20, nb::arg("neighbours") = "",
           Unlocked(),
           "Attaches to a cache, creating it if there is none. neighbours: a folder of other "
           "caches; "
           "unused ones are removed if there is no room. Raises FeedError if it cannot be attached "
           "or created.")
      .def("has", &Cache::has, nb::arg("sample"), "Whether the sample is cached.")
      .def("bytes_of", &bytes_of, nb::arg("sample"),
           "The bytes of a sample; None if it is not cached, or was damaged and is dropped now.")
      .def("offer", &offer, nb::arg("sample"), nb::arg("data"),
           nb::sig("def offer(self, sample: int, data: typing_extensions.Buffer) -> bool"),
           "Stores the bytes of a sample; False if there is no room for more.")
      .def("drop", &Cache::drop, nb::arg("sample"), Unlocked(), "Removes a sample.")
      .def("complaint", &Cache::complaint,
           "Why the first sample that is not stored was not; empty if all were.")
      .def("damaged", &Cache::damaged, "Reads that found other bytes than were stored.")
      .def("stolen", &Cache::stolen, "Claims taken over from dead processes.")
      .def("evicted_bytes", &Cache::evicted_bytes,
           "Bytes of other data sets that were removed to make room for this one.")
      .def("replaced", &Cache::replaced,
           "Samples of another list that were removed when this process attached.")
      .def_static("evict_oldest", &Cache::evict_oldest, nb::arg("neighbours"), nb::arg("mine"),
                  Unlocked(),
                  "Removes the neighbour unused for longest; the bytes freed, 0 if there is none.")
      .def_static("state_of", of_folder<&Cache::state_of>, nb::arg("folder"), Unlocked(),
                  "Raises FeedError if there is no cache.")
      .def_static(
          "verify", &verify, nb::arg("folder"), nb::arg("done") = nb::none(),
          "Reads and checks every sample, removes damaged ones, and returns their number. done "
          "counts the checked samples meanwhile.")
      .def_static(
          "clear", of_folder<&Cache::clear>, nb::arg("folder"), Unlocked(),
          "Removes a cache and returns the freed bytes. Raises FeedError if a process uses it.");
}
