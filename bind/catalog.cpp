// What a data set holds, and its files.

#include "catalog/catalog.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/progress.h"
#include "bind.h"
#include "cache/cache.h"
#include "gil.h"
#include "names.h"
#include "source/files.h"
#include "source/prefetch_listing.h"
#include "watched.h"

namespace nb = nanobind;
using namespace nb::literals;
using flowos::feed::Cache;
using flowos::feed::Catalog;
using flowos::feed::Files;
using flowos::feed::FolderPrefetcher;
using flowos::feed::Opened;
using flowos::feed::Progress;

namespace {

using Path = std::filesystem::path;
using Unlocked = nb::call_guard<GilRelease>;
using Numbers = std::vector<std::int64_t>;
using Array = nb::ndarray<nb::numpy, std::int64_t, nb::ndim<1>>;
using Mask = nb::ndarray<nb::numpy, bool, nb::ndim<1>, nb::c_contig>;

Catalog made(std::vector<FileName> groups, const std::vector<FileName>& names,
             const Numbers& group_of, const Numbers& sizes, const std::optional<Numbers>& labels,
             const std::optional<Numbers>& offsets, std::vector<FileName> classes,
             const FileName& state) {
  const std::size_t count = names.size();
  if (group_of.size() != count || sizes.size() != count || (labels && labels->size() != count) ||
      (offsets && offsets->size() != count)) {
    throw nb::value_error("Catalog: as many of each as there are names");
  }
  Catalog catalog(offsets ? Catalog::Kind::tars : Catalog::Kind::named);
  catalog.set_classes(bytes_of(std::move(classes)));
  if (!state.bytes.empty()) {
    catalog.add_stamp({.path = state.bytes, .mtime_ns = 0, .size = -1, .settled = true});
  }
  std::uint64_t bytes_of_names = 0;
  for (const FileName& name : names) bytes_of_names += name.bytes.size();
  catalog.reserve(count, bytes_of_names);
  for (FileName& group : groups) catalog.add_group(std::move(group.bytes));
  for (std::size_t i = 0; i < count; ++i) {
    // What is negative or too much becomes so large that it is refused below.
    catalog.add({.group = static_cast<std::uint32_t>(
                     std::min<std::uint64_t>(static_cast<std::uint64_t>(group_of[i]), UINT32_MAX)),
                 .offset = offsets ? static_cast<std::uint64_t>((*offsets)[i]) : 0,
                 .size = sizes[i]},
                names[i].bytes, labels ? std::optional((*labels)[i]) : std::nullopt);
  }
  if (!catalog.is_sound()) {
    throw nb::value_error(
        "Catalog: group_of counts groups from 0; a size is -1 at least, and 0 where there are "
        "offsets, which are not negative; labels count classes, where these have names");
  }
  return catalog;
}

Catalog list_folder(const Path& root, unsigned threads, Progress* found,
                    FolderPrefetcher* prefetcher) {
  return watched(found, [&](Progress& progress) {
    if (prefetcher == nullptr) return flowos::feed::list_folder(root, threads, progress);
    return flowos::feed::list_folder(root, threads, progress,
                                     [prefetcher](std::string_view folder, std::string_view names) {
                                       prefetcher->found(folder, names);
                                     });
  });
}

Catalog list_tars(const Path& root, std::vector<FileName> shards, const FileName& member,
                  unsigned threads, Progress* found) {
  const std::vector<std::string> names = bytes_of(std::move(shards));
  return watched(found, [&](Progress& progress) {
    return flowos::feed::list_tars(root, names, member.bytes, threads, progress);
  });
}

Catalog list_arrays(const Path& root, std::vector<FileName> arrays, std::uint64_t header_bytes,
                    std::uint64_t record_bytes) {
  const std::vector<std::string> names = bytes_of(std::move(arrays));
  const GilRelease release;
  return flowos::feed::list_arrays(root, names, header_bytes, record_bytes);
}

nb::bytes serialized(const Catalog& catalog) {
  std::string bytes;
  {
    const GilRelease release;
    bytes = catalog.serialized();
  }
  return nb::bytes(bytes.data(), bytes.size());
}

std::optional<Catalog> parsed(const nb::bytes& data) {
  const std::string_view bytes(data.c_str(), data.size());
  const GilRelease release;
  return Catalog::parse(bytes);
}

template <typename Of>
Array column(const Catalog& catalog, const Of& of) {
  auto* numbers = new Numbers(catalog.count());
  const nb::capsule owner(numbers, [](void* p) noexcept { delete static_cast<Numbers*>(p); });
  for (std::uint64_t i = 0; i < catalog.count(); ++i) (*numbers)[i] = of(i);
  return Array(numbers->data(), {numbers->size()}, owner);
}

std::optional<Array> labels(const Catalog& catalog) {
  if (!catalog.has_labels()) return std::nullopt;
  return column(catalog, [&](std::uint64_t i) { return catalog.label(i); });
}
Array group_of(const Catalog& catalog) {
  return column(catalog, [&](std::uint64_t i) { return std::int64_t{catalog.extent(i).group}; });
}
Array sizes(const Catalog& catalog) {
  return column(catalog, [&](std::uint64_t i) { return catalog.extent(i).size; });
}
Array offsets(const Catalog& catalog) {
  return column(catalog, [&](std::uint64_t i) {
    return static_cast<std::int64_t>(catalog.extent(i).offset);
  });
}

std::vector<FileName> names_of(const std::vector<std::string>& texts) {
  std::vector<FileName> names;
  names.reserve(texts.size());
  for (const std::string& text : texts) names.push_back({text});
  return names;
}

std::vector<FileName> folders(const Catalog& catalog) {
  std::vector<FileName> names;
  if (catalog.kind() != Catalog::Kind::folder) return names;
  for (const Catalog::Stamp& stamp : catalog.stamps()) names.push_back({stamp.path});
  return names;
}

const char* kind(const Catalog& catalog) {
  switch (catalog.kind()) {
    case Catalog::Kind::folder:
      return "folder";
    case Catalog::Kind::tars:
      return "tars";
    case Catalog::Kind::arrays:
      return "arrays";
    case Catalog::Kind::named:
      break;
  }
  return "named";
}

Mask ends_in(const Catalog& catalog, std::vector<FileName> endings) {
  const auto texts = bytes_of(std::move(endings));
  auto* found = new std::vector<std::uint8_t>(catalog.ends_in(texts));
  const nb::capsule owner(
      found, [](void* p) noexcept { delete static_cast<std::vector<std::uint8_t>*>(p); });
  return Mask(reinterpret_cast<bool*>(found->data()), {found->size()}, owner);
}

Catalog only(const Catalog& catalog, const Mask& mask) {
  if (mask.size() != catalog.count()) throw nb::value_error("Catalog.only: one for each sample");
  std::vector<std::uint64_t> samples;
  for (std::uint64_t i = 0; i < catalog.count(); ++i) {
    if (mask.data()[i]) samples.push_back(i);
  }
  return catalog.only(samples);
}

bool drop_replaced(const Catalog& catalog, const Catalog& before, std::int64_t listed_ns,
                   const Path& root, Cache& cache, unsigned threads) {
  const auto replaced = catalog.replaced_since(before, listed_ns, root, threads,
                                               [&](auto sample) { return cache.has(sample); });
  for (const std::uint64_t sample : replaced) cache.drop(sample);
  return std::ranges::none_of(replaced, [&](auto sample) { return cache.has(sample); });
}

void check(const Catalog& catalog, std::uint64_t sample) {
  if (sample >= catalog.count()) throw std::out_of_range("no such sample");
}

nb::bytes read_sample(const Files& files, std::uint64_t sample) {
  check(files.catalog(), sample);
  std::string bytes;
  {
    const GilRelease release;
    const Opened opened = files.open(sample);
    bytes.resize(opened.size());
    files.read(sample, opened, reinterpret_cast<std::byte*>(bytes.data()));
  }
  return nb::bytes(bytes.data(), bytes.size());
}

void bind_prefetcher(nb::class_<FolderPrefetcher>& prefetcher) {
  prefetcher
      .def(
          "__init__",
          [](FolderPrefetcher* at, const Path& root, unsigned threads, std::uint64_t max_bytes) {
            new (at) FolderPrefetcher(root, threads, max_bytes);
          },
          "root"_a, "threads"_a, "max_bytes"_a, Unlocked(),
          "Holds at most so many bytes in memory. Raises FeedError if there is no such folder.")
      .def(
          "keep",
          [](FolderPrefetcher& its, const Catalog& catalog, Cache& cache) {
            its.keep(catalog, cache);
          },
          "catalog"_a, "cache"_a, Unlocked(),
          "Writes what was read into the cache of this catalog's samples; nothing more is read.")
      .def("end", &FolderPrefetcher::end, Unlocked(), "Stops reading and frees what was read.")
      .def_prop_ro("bytes", &FolderPrefetcher::bytes, "Read from the source, in all.")
      .def_prop_ro("samples", &FolderPrefetcher::samples, "Read from the source, in all.");
}

// What is said of all samples at once.
void bind_columns(nb::class_<Catalog>& catalog) {
  catalog.def_prop_ro("kind", &kind, "folder, tars, arrays or named.")
      .def(
          "groups", [](const Catalog& its) { return names_of(its.groups()); },
          "Folders, shards or arrays, relative to the root.")
      .def("folders", &folders, "Of a folder: itself and all below it, also those without samples.")
      .def("labels", &labels,
           "(samples,), NO_LABEL for a sample without one; None if no labels were given.")
      .def(
          "classes", [](const Catalog& its) { return names_of(its.classes()); },
          "The names of the classes that labels number; empty if labels are plain numbers.")
      .def("ends_in", &ends_in, "endings"_a,
           "(samples,), whether each name ends in a dot and one of these, which are lower case.")
      .def("only", &only, "samples"_a, "A catalog of those where this (samples,) is true.")
      .def("group_of", &group_of, "(samples,), numbers of groups.")
      .def("sizes", &sizes, "(samples,), bytes; -1: not known.")
      .def("offsets", &offsets, "(samples,), bytes within the file.");
}

// What is compared with what was listed or cached before.
void bind_changes(nb::class_<Catalog>& catalog) {
  catalog
      .def("fingerprint", &Catalog::fingerprint, Unlocked(),
           "Of all names, places and groups, not of sizes: the same samples in the same order.")
      .def("cache_key", &Catalog::cache_key, Unlocked(),
           "Of the fingerprint and the sizes and times of shards and arrays.")
      .def("drop_replaced", &drop_replaced, "before"_a, "listed_ns"_a, "root"_a, "cache"_a,
           "threads"_a = 32, Unlocked(),
           "Removes from its cache what may be another sample than in a catalog of the same folder "
           "from before, listed then. False: some of it cannot be removed.")
      .def(
          "still_holds",
          [](const Catalog& its, const Path& root, unsigned threads) {
            return its.still_holds(root, threads);
          },
          "root"_a, "threads"_a = 32, Unlocked(),
          "Nothing was added, removed or renamed in any folder, no shard and no array written. "
          "False also if that cannot be determined.");
}

void bind_listings(nb::class_<Catalog>& catalog) {
  catalog
      .def_static(
          "list_folder", &list_folder, "root"_a, "threads"_a = 32, "found"_a = nb::none(),
          "prefetcher"_a = nb::none(),
          "Every file of every folder, in byte order of the paths; hidden ones left out. "
          "prefetcher: reads them meanwhile. Raises FeedError if a folder does not exist or "
          "cannot be listed, or if there are no samples.")
      .def_static(
          "list_tars", &list_tars, "root"_a, "shards"_a, "member"_a = FileName{}, "threads"_a = 8,
          "found"_a = nb::none(),
          "The samples of tar shards of WebDataset's layout, by their headers. member: "
          "which is the sample, such as \"jpg\"; empty: the first that is no cls, json, "
          "txt. Raises FeedError if a shard is no tar, compressed, truncated or damaged, or if "
          "there are no samples.")
      .def_static("list_arrays", &list_arrays, "root"_a, "arrays"_a, "header_bytes"_a,
                  "record_bytes"_a,
                  "Pieces of equal size, after a header, of arrays; what is left over is not used. "
                  "Raises FeedError if an array cannot be read, or none holds a whole record.")
      .def_static("parse", &parsed, "data"_a,
                  "Inverse of serialized(); None if these bytes are incomplete or no catalog.");
}

}  // namespace

void bind_catalog(nb::module_& m) {
  nb::class_<Progress>(m, "Counter", "What a listing has found so far; it can be stopped.")
      .def(nb::init<>())
      .def_prop_rw(
          "value", [](const Progress& progress) { return progress.found.load(); },
          [](Progress& progress, std::uint64_t value) { progress.found = value; }, "Samples.")
      .def(
          "stop", [](Progress& progress) { progress.stopped = true; },
          "Ends the listing with FeedError; may be called from any thread.");

  nb::class_<FolderPrefetcher> prefetcher(
      m, "FolderPrefetcher",
      "Reads files while the folder that they lie in is still being listed.");
  nb::class_<Catalog> catalog(m, "Catalog",
                              "What a data set holds: its samples in a fixed order. Names are str "
                              "as of os.fsdecode.");
  catalog
      .def(nb::new_(&made), "groups"_a, "names"_a, "group_of"_a, "sizes"_a, "labels"_a = nb::none(),
           "offsets"_a = nb::none(), "classes"_a = std::vector<FileName>(), "state"_a = FileName{},
           "A catalog of given samples. sizes: bytes, -1 is unknown. labels: NO_LABEL is none. "
           "classes: the names of labels. offsets: samples are pieces of the files that the groups "
           "name, and called GROUP:NAME. state: another one when bytes of any of them are; it goes "
           "into the cache key. Raises ValueError if lengths or numbers do not fit.")
      .def("__len__", &Catalog::count)
      .def(
          "name",
          [](const Catalog& its, std::uint64_t sample) {
            check(its, sample);
            return FileName{its.name(sample)};
          },
          "sample"_a, "Its name: PATH, SHARD:KEY or ARRAY[NUMBER]. Raises IndexError.")
      .def("serialized", &serialized, "As bytes, for parse().");
  catalog.attr("NO_LABEL") = Catalog::no_label;
  bind_columns(catalog);
  bind_changes(catalog);
  bind_listings(catalog);
  bind_prefetcher(prefetcher);

  nb::class_<Files>(m, "Files", "The samples of a catalog below a root that is mounted here.")
      .def(
          "__init__",
          [](Files* at, const Path& root, std::shared_ptr<const Catalog> its) {
            new (at) Files(root, std::move(its));
          },
          "root"_a, "catalog"_a, Unlocked(), "Raises FeedError if there is no such folder.")
      .def("read", &read_sample, "sample"_a,
           "Its bytes. Raises SampleError if it cannot be read, IndexError if there is none.");
}
