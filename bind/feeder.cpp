// The feeder and its batches, whose memory Python sees without a copy.

#include "pipeline/feeder.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/errors.h"
#include "bind.h"
#include "cache/cache.h"
#include "catalog/catalog.h"
#include "catalog/order.h"
#include "decode/decoder.h"
#include "gil.h"
#include "lent.h"
#include "peers/settings.h"
#include "pipeline/batch.h"
#include "source/files.h"

namespace nb = nanobind;
using flowos::feed::Feeder;
using flowos::feed::FeedError;
using flowos::feed::FeederSettings;
using flowos::feed::FeederStats;
using flowos::feed::Last;
using flowos::feed::OnError;
using flowos::feed::Share;
using flowos::feed::StageStats;

namespace {

using Unlocked = nb::call_guard<GilRelease>;

// A batch in Python's hands: arrays of it keep this object, and so its memory.
struct Fed {
  std::shared_ptr<const flowos::feed::Batch> batch;
};

template <typename T>
using Array = nb::ndarray<nb::numpy, T, nb::ndim<1>, nb::c_contig>;

template <auto kMember>
Array<const std::int64_t> numbers(nb::handle_t<Fed> self) {
  const auto& values = (*nb::inst_ptr<Fed>(self)->batch).*kMember;
  return {values.data(), {values.size()}, self};
}

// Read-only where the cache may still be written from it.
nb::object data(nb::handle_t<Fed> self) {
  const flowos::feed::Batch& batch = *nb::inst_ptr<Fed>(self)->batch;
  if (batch.writable) {
    return nb::cast(Array<std::uint8_t>(reinterpret_cast<std::uint8_t*>(batch.arena.data()),
                                        {batch.used_bytes}, self));
  }
  return nb::cast(Array<const std::uint8_t>(
      reinterpret_cast<const std::uint8_t*>(batch.arena.data()), {batch.used_bytes}, self));
}

// Looks labels up for a batch. NumPy would need an array of its samples for that, and takes longer
// to look at what it was given than to copy so few.
class Labels {
 public:
  explicit Labels(const nb::object& values)
      : values_(values),
        dtype_(values.attr("dtype")),
        empty_(nb::module_::import_("numpy").attr("empty")) {
    if (nb::len(values) * kBytes != values_.bytes().size()) {
      throw nb::value_error("Labels: 8 bytes for each sample");
    }
  }

  nb::object of(const Fed& fed) const {
    const std::vector<std::int64_t>& samples = fed.batch->samples;
    nb::object labels = empty_(samples.size(), dtype_);
    const Lent into(labels, PyBUF_WRITABLE);
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const std::size_t at = static_cast<std::size_t>(samples[i]) * kBytes;
      if (at >= values_.bytes().size()) throw nb::index_error("Labels: of another data set");
      std::memcpy(into.writable() + i * kBytes, values_.bytes().data() + at, kBytes);
    }
    return labels;
  }

 private:
  static constexpr std::size_t kBytes = 8;

  Lent values_;
  nb::object dtype_, empty_;
};

template <typename Value, std::size_t kCount>
Value named(const char* what, const std::string& name,
            const std::array<std::pair<std::string_view, Value>, kCount>& values) {
  std::string known;
  for (const auto& [its_name, value] : values) {
    if (name == its_name) return value;
    known += (known.empty() ? "" : ", ") + std::string(its_name);
  }
  throw FeedError(std::string(what) + ": '" + name + "' is none of " + known);
}

Last last_of(const std::string& name) {
  using Named = std::pair<std::string_view, Last>;
  return named(
      "last", name,
      std::array{Named{"drop", Last::drop}, Named{"pad", Last::pad}, Named{"keep", Last::keep}});
}

OnError on_error_of(const std::string& name) {
  using Named = std::pair<std::string_view, OnError>;
  return named("on_error", name,
               std::array{Named{"error", OnError::error}, Named{"skip", OnError::skip},
                          Named{"replace", OnError::replace}});
}

// A feeder ends its threads when it goes, which may have to wait for a read: never with the GIL.
class PythonFeeder {
 public:
  PythonFeeder(const FeederSettings& settings,
               const std::shared_ptr<const flowos::feed::Catalog>& catalog,
               std::shared_ptr<const flowos::feed::Files> files,
               std::shared_ptr<flowos::feed::Cache> cache,
               std::shared_ptr<const flowos::feed::Decoder> decoder)
      : share_(settings.share),
        feeder_(std::make_unique<Feeder>(settings, catalog, std::move(files), std::move(cache),
                                         std::move(decoder))) {
    share_.count = catalog->count();
  }
  PythonFeeder(const PythonFeeder&) = delete;
  PythonFeeder& operator=(const PythonFeeder&) = delete;
  ~PythonFeeder() {
    const GilRelease unlocked;
    feeder_.reset();
  }

  Feeder& native() const { return *feeder_; }

  std::uint64_t batches(std::uint64_t start) const { return from(start).batches(); }
  std::uint64_t start_after(std::uint64_t start, std::uint64_t batches) const {
    const Share share = from(start);
    return share.start_after(std::min(batches, share.batches()));
  }

  std::optional<Fed> next() {
    constexpr std::chrono::milliseconds kLookForSignals{100};
    for (;;) {
      std::optional<std::shared_ptr<const flowos::feed::Batch>> came;
      {
        const GilRelease unlocked;
        came = feeder_->next_within(kLookForSignals);
      }
      if (came) return *came ? std::optional(Fed{*std::move(came)}) : std::nullopt;
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
    }
  }

  std::vector<std::pair<std::uint64_t, std::uint64_t>> pull(std::size_t max_tickets) {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> tickets;
    for (const Feeder::Ticket& ticket : feeder_->pull(max_tickets)) {
      tickets.emplace_back(ticket.id, ticket.sample);
    }
    return tickets;
  }

  void push(std::uint64_t id, nb::handle data) {
    const Lent lent(data);
    const GilRelease unlocked;
    feeder_->push(id, lent.bytes());
  }

 private:
  Share from(std::uint64_t start) const {
    Share share = share_;
    share.start = std::min(start, share.count);
    return share;
  }

  Share share_;
  std::unique_ptr<Feeder> feeder_;
};

void make(PythonFeeder* at, const std::shared_ptr<const flowos::feed::Catalog>& catalog,
          std::shared_ptr<const flowos::feed::Files> files,
          std::shared_ptr<flowos::feed::Cache> cache,
          std::shared_ptr<const flowos::feed::Decoder> decoder, std::uint32_t batch_size,
          std::uint32_t rank, std::uint32_t world_size, const std::string& last, std::uint64_t seed,
          bool shuffle, std::uint64_t record_bytes, std::uint64_t memory_bytes,
          std::uint32_t max_in_flight, std::uint64_t epochs_ahead, const std::string& on_error,
          std::uint64_t max_skipped, std::optional<flowos::feed::PeerSettings> peers) {
  FeederSettings settings;
  settings.share.batch_size = batch_size;
  settings.share.rank = rank;
  settings.share.world_size = world_size;
  settings.share.last = last_of(last);
  settings.seed = seed;
  settings.shuffle = shuffle;
  settings.record_bytes = record_bytes;
  settings.memory_bytes = memory_bytes;
  settings.max_in_flight = max_in_flight;
  settings.epochs_ahead = epochs_ahead;
  settings.on_error = on_error_of(on_error);
  settings.max_skipped = max_skipped;
  settings.peers = std::move(peers);
  new (at) PythonFeeder(settings, catalog, std::move(files), std::move(cache), std::move(decoder));
}

void bind_batch(nb::module_& m) {
  using flowos::feed::Batch;
  nb::class_<Fed>(m, "Batch",
                  "A minibatch. Its memory is used again when it and all arrays of it are gone.")
      .def_prop_ro("epoch", [](const Fed& fed) { return fed.batch->epoch; })
      .def_prop_ro(
          "number", [](const Fed& fed) { return fed.batch->number; },
          "Number of this rank's batch since the last seek.")
      .def_prop_ro("samples", &numbers<&Batch::samples>, "Numbers of the samples: int64, (n,).")
      .def_prop_ro("offsets", &numbers<&Batch::offsets>,
                   "Where each begins in the data, in bytes: int64, (n,).")
      .def_prop_ro("lengths", &numbers<&Batch::lengths>, "Bytes of each: int64, (n,).")
      .def_prop_ro("data", &data, nb::sig("def data(self) -> numpy.typing.NDArray[numpy.uint8]"),
                   "The used bytes, without a copy: uint8, (bytes,). Read-only where the cache may "
                   "still be filled from it.");
  nb::class_<Labels>(m, "Labels", "Of all samples of a data set.")
      .def(nb::init<const nb::object&>(), nb::arg("values"),
           nb::sig("def __init__(self, values: numpy.typing.NDArray[typing.Any]) -> None"),
           "int64 or float64, (samples,). Raises ValueError for other arrays.")
      .def("of", &Labels::of, nb::arg("batch"),
           nb::sig("def of(self, batch: Batch) -> numpy.typing.NDArray[typing.Any]"),
           "Labels of the samples of a batch: a new array of the same dtype, (n,).");
}

void bind_stats(nb::module_& m) {
  nb::class_<StageStats>(m, "StageStats", "What one stage of a feeder did.")
      .def_ro("seconds", &StageStats::seconds,
              "Of its samples, summed; those that are under way included.")
      .def_ro("working_seconds", &StageStats::working_seconds,
              "Of these, that it kept a thread at work.")
      .def_ro("queued_seconds", &StageStats::queued_seconds,
              "That samples waited before it, summed.")
      .def_ro("samples", &StageStats::samples)
      .def_ro("bytes", &StageStats::bytes, "As they came to it.");
  nb::class_<FeederStats>(m, "FeederStats", "Counters and current state of a feeder.")
      .def_ro("source_bytes", &FeederStats::source_bytes)
      .def_ro("cache_bytes", &FeederStats::cache_bytes)
      .def_ro("peer_bytes", &FeederStats::peer_bytes)
      .def_ro("source_samples", &FeederStats::source_samples)
      .def_ro("cache_samples", &FeederStats::cache_samples)
      .def_ro("peer_samples", &FeederStats::peer_samples)
      .def_ro("batches", &FeederStats::batches, "Batches returned by next().")
      .def_ro("waits", &FeederStats::waits, "Batches that were not ready when next() was called.")
      .def_ro("waited_seconds", &FeederStats::waited_seconds, "Seconds that next() waited, in all.")
      .def_ro("waited_for_reads_seconds", &FeederStats::waited_for_reads_seconds,
              "Of these, while a thread had nothing to do.")
      .def_ro("consumer_seconds", &FeederStats::consumer_seconds,
              "Seconds since the first request, but for those that next() waited.")
      .def_ro("fetch", &FeederStats::fetch)
      .def_ro("decode", &FeederStats::decode)
      .def_ro("cache_write", &FeederStats::cache_write)
      .def_ro("hand_over", &FeederStats::hand_over)
      .def_ro("skipped", &FeederStats::skipped)
      .def_ro("replaced", &FeederStats::replaced)
      .def_ro("damaged", &FeederStats::damaged, "Cached samples that were damaged.")
      .def_ro("stolen", &FeederStats::stolen, "Claims taken over from dead processes.")
      .def_ro("in_flight", &FeederStats::in_flight, "Reads of the source under way now.")
      .def_ro("depth", &FeederStats::depth, "Reads of the source that may be under way at once.")
      .def_ro("ready", &FeederStats::ready, "Batches that are ready.")
      .def_ro("complaint", &FeederStats::complaint,
              "Complaint of the cache; empty if there is none.");
}

void bind_peers(nb::module_& m) {
  using flowos::feed::PeerSettings;
  const auto make_settings =
      [](PeerSettings* at, std::vector<std::string> nodes, std::uint32_t node, std::string secret,
         std::vector<std::uint32_t> node_of_rank, double timeout_seconds, double rest_seconds) {
        using Seconds = std::chrono::duration<double>;
        using std::chrono::duration_cast;
        using std::chrono::milliseconds;
        new (at) PeerSettings{.nodes = std::move(nodes),
                              .node = node,
                              .node_of_rank = std::move(node_of_rank),
                              .secret = std::move(secret),
                              .max_wait = duration_cast<milliseconds>(Seconds(timeout_seconds)),
                              .rest = duration_cast<milliseconds>(Seconds(rest_seconds))};
      };
  nb::class_<PeerSettings>(m, "PeerSettings",
                           "How the nodes of a run send each other cached samples.")
      .def("__init__", make_settings, nb::arg("nodes"), nb::arg("node"), nb::arg("secret"),
           nb::arg("node_of_rank") = std::vector<std::uint32_t>(), nb::arg("timeout_seconds") = 2.0,
           nb::arg("rest_seconds") = 10.0,
           "nodes: HOST:PORT where each listens. node: number of this one. node_of_rank: empty for "
           "one rank on each node.");
}

}  // namespace

void bind_feeder(nb::module_& m) {
  bind_batch(m);
  bind_peers(m);
  bind_stats(m);
  nb::class_<PythonFeeder>(m, "Feeder",
                           "Prefetches batches in sampling order on background threads.")
      .def("__init__", &make, nb::arg("catalog"), nb::arg("files").none(), nb::arg("cache").none(),
           nb::arg("decoder").none(), nb::kw_only(), nb::arg("batch_size"), nb::arg("rank") = 0,
           nb::arg("world_size") = 1, nb::arg("last") = "keep", nb::arg("seed") = 0,
           nb::arg("shuffle") = true, nb::arg("record_bytes") = 0,
           nb::arg("memory_bytes") = std::uint64_t{1} << 30, nb::arg("max_in_flight") = 256,
           nb::arg("epochs_ahead") = 1, nb::arg("on_error") = "error",
           nb::arg("max_skipped") = 1000, nb::arg("peers") = nb::none(),
           "files: None if the caller pulls tickets and pushes bytes. epochs_ahead: so many epochs "
           "are prefetched after the current one.")
      .def(
          "seek",
          [](PythonFeeder& feeder, std::uint64_t epoch, std::uint64_t start) {
            feeder.native().seek(epoch, start);
          },
          nb::arg("epoch"), nb::arg("start"), Unlocked(),
          "Sets the position of the next batch. Free if it is the next one anyway.")
      .def("next", &PythonFeeder::next,
           "Waits for the next batch; None at the end of the epoch, or when closed. Raises "
           "SampleError or FeedError if a sample cannot be had.")
      .def(
          "close", [](PythonFeeder& feeder) { feeder.native().close(); }, Unlocked(),
          "Ends all threads and all waiting calls.")
      .def(
          "closed", [](PythonFeeder& feeder) { return feeder.native().closed(); }, Unlocked(),
          "Whether pull() returns nothing any more.")
      .def(
          "stats", [](PythonFeeder& feeder) { return feeder.native().stats(); }, Unlocked())
      .def("batches", &PythonFeeder::batches, nb::arg("start"),
           "How many batches an epoch has from this position on.")
      .def("start_after", &PythonFeeder::start_after, nb::arg("start"), nb::arg("batches"),
           "The position where an epoch goes on after so many batches of all ranks.")
      .def("pull", &PythonFeeder::pull, nb::arg("max_tickets"), Unlocked(),
           "Waits for samples to fetch: (id, sample); empty when closed.")
      .def("push", &PythonFeeder::push, nb::arg("id"), nb::arg("data"),
           nb::sig("def push(self, id: int, data: typing_extensions.Buffer) -> None"),
           "Delivers the bytes of a pulled sample.")
      .def(
          "fail",
          [](PythonFeeder& feeder, std::uint64_t id, const std::string& why) {
            feeder.native().fail(id, why);
          },
          nb::arg("id"), nb::arg("why"), Unlocked(),
          "Reports that a pulled sample cannot be fetched.");
}
