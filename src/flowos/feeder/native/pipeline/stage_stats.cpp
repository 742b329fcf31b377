#include <memory>
#include <vector>

#include "pipeline/feeder.h"
#include "pipeline/feeder_impl.h"
#include "pipeline/stage_times.h"

namespace flowos::feed {
namespace {

// Sums over threads.
struct Sums {
  double worked(Work work) const {
    Nanoseconds sum = 0;
    for (const std::unique_ptr<ThreadTimes>& one : times) sum += one->worked(work);
    return seconds_of(sum);
  }
  double queued() const {
    Nanoseconds sum = 0;
    for (const std::unique_ptr<ThreadTimes>& one : times) sum += one->queued_for();
    return seconds_of(sum);
  }
  ThreadTimes::Count counted(Did did) const {
    ThreadTimes::Count sum;
    for (const std::unique_ptr<ThreadTimes>& one : times) {
      const ThreadTimes::Count more = one->counted(did);
      sum.samples += more.samples;
      sum.bytes += more.bytes;
    }
    return sum;
  }

  const std::vector<std::unique_ptr<ThreadTimes>>& times;
};

void set_counts(StageStats& stage, const ThreadTimes::Count& count) {
  stage.samples = count.samples;
  stage.bytes = count.bytes;
}

}  // namespace

void Feeder::Inside::add_stages(FeederStats& stats, Nanoseconds now) const {
  using For = Waits::For;
  const Sums sums{times};
  const ThreadTimes::Count source = sums.counted(Did::read_source);
  const ThreadTimes::Count cached = sums.counted(Did::read_cache);
  const ThreadTimes::Count peer = sums.counted(Did::read_peer);
  stats.source_samples = source.samples + pushed.samples;
  stats.source_bytes = source.bytes + pushed.bytes;
  stats.cache_samples = cached.samples;
  stats.cache_bytes = cached.bytes;
  stats.peer_samples = peer.samples;
  stats.peer_bytes = peer.bytes;

  stats.consumer_seconds = seconds_of(consumer_waits.until(For::nothing, now));
  stats.waited_for_reads_seconds = seconds_of(consumer_waits.until(For::reads, now));
  stats.waited_seconds =
      stats.waited_for_reads_seconds + seconds_of(consumer_waits.until(For::threads, now));

  StageStats& fetch = stats.fetch;
  fetch.samples = stats.source_samples + stats.cache_samples + stats.peer_samples;
  fetch.bytes = stats.source_bytes + stats.cache_bytes + stats.peer_bytes;
  fetch.working_seconds = sums.worked(Work::fetch);
  fetch.seconds = fetch.working_seconds + seconds_of(outside.until(now));
  fetch.queued_seconds = sums.queued() + seconds_of(requests_waited);
  set_counts(stats.decode, sums.counted(Did::decode));
  stats.decode.seconds = stats.decode.working_seconds = sums.worked(Work::decode);
  set_counts(stats.cache_write, sums.counted(Did::cache_write));
  stats.cache_write.seconds = stats.cache_write.working_seconds = sums.worked(Work::cache_write);
  // What was pushed waits for the next stage that there is.
  (decoder ? stats.decode : stats.cache_write).queued_seconds = seconds_of(arrivals_waited);
  set_counts(stats.hand_over, handed_over);
  stats.hand_over.seconds = stats.hand_over.working_seconds = seconds_of(settling);
  stats.hand_over.queued_seconds = seconds_of(ready_waited);
}

}  // namespace flowos::feed
