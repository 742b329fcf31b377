#include "cache/recover.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "cache/folder.h"
#include "cache/index.h"
#include "cache/layout.h"

namespace flowos::feed::cache {
namespace {

// A segment's file and which of its slots entries refer to.
struct Segment {
  std::uint32_t number = 0;
  std::uint32_t capacity = 0;  // slots
  std::vector<bool> used{};
  std::uint32_t used_count = 0;
  std::uint32_t end = 0;  // of the last one used

  std::uint32_t tail() const { return capacity - end; }
};

class Recovery {
 public:
  Recovery(const Folder& folder, const SharedIndex& index, bool restarted)
      : folder_(folder), index_(index), restarted_(restarted), by_record_(kSegments, 0) {
    for (const std::uint32_t number : segments_in(folder)) add(number);
  }

  void check_entries() {
    for (std::uint64_t sample = 0; sample < index_.samples(); ++sample) {
      Entry& entry = index_.entry(sample);
      const std::uint64_t bits = entry.word.load(std::memory_order_relaxed);
      if (bits == 0) continue;
      Word word = Word::of(bits);
      if (!word.kept() || !mark(entry)) word = {};
      if (word.kept() && restarted_) word.state = State::unverified;
      if (word.bits() != bits) entry.word.store(word.bits(), std::memory_order_relaxed);
    }
  }

  void settle_segments() {
    Header& header = index_.header();
    header.held_bytes = 0;
    for (auto& lane : header.lanes) lane = 0;
    for (std::uint32_t record = 0; record < kSegments; ++record) {
      if (index_.record(record).number.load() != 0) index_.record(record).number = 0;
    }
    // Those with the most room left are continued, the others end where they are used.
    std::sort(segments_.begin(), segments_.end(),
              [](const Segment& a, const Segment& b) { return a.tail() > b.tail(); });
    for (const std::string& name : superfluous_) remove_file(folder_, name);
    std::uint32_t lane = 0;
    std::uint32_t last = header.last_segment.load();
    for (Segment& segment : segments_) {
      last = std::max(last, segment.number);
      if (segment.used_count == 0) {
        remove_file(folder_, segment_name(segment.number));
        continue;
      }
      const bool continued = segment.tail() != 0 && lane < kLanes;
      settle(segment, continued);
      if (continued) header.lanes[lane++] = Lane{segment.number, segment.end}.bits();
    }
    header.last_segment = last;
  }

 private:
  void add(std::uint32_t number) {
    struct stat status{};
    const std::string name = segment_name(number);
    if (::fstatat(folder_.at.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return;
    if (!S_ISREG(status.st_mode) || by_record_[number % kSegments] != 0) {
      superfluous_.push_back(name);
      return;
    }
    Segment segment{number};
    segment.capacity = static_cast<std::uint32_t>(std::min<std::uint64_t>(
        static_cast<std::uint64_t>(status.st_size) / kSlotBytes, UINT32_MAX));
    segment.used.resize(segment.capacity);
    segments_.push_back(std::move(segment));
    by_record_[number % kSegments] = static_cast<std::uint32_t>(segments_.size());
  }

  // False: what the entry says cannot be.
  bool mark(const Entry& entry) {
    const std::uint64_t slots = slots_for(entry.length.load(std::memory_order_relaxed));
    if (slots == 0) return true;
    const std::uint32_t number = entry.segment.load(std::memory_order_relaxed);
    const std::uint64_t first = entry.first.load(std::memory_order_relaxed);
    const std::uint32_t known = by_record_[number % kSegments];
    if (known == 0 || segments_[known - 1].number != number) return false;
    Segment& segment = segments_[known - 1];
    if (slots > segment.capacity || first > segment.capacity - slots) return false;
    for (std::uint64_t slot = first; slot < first + slots; ++slot) {
      segment.used_count += segment.used[slot] ? 0 : 1;
      segment.used[slot] = true;
    }
    segment.end = std::max(segment.end, static_cast<std::uint32_t>(first + slots));
    return true;
  }

  void settle(Segment& segment, bool continued) {
    const Descriptor opened = open_file(folder_, segment_name(segment.number), O_RDWR);
    const int file = opened.get();
    if (!continued && segment.tail() != 0 &&
        ::ftruncate(file, static_cast<off_t>(segment.end * kSlotBytes)) == 0) {
      segment.capacity = segment.end;
    }
    const std::uint32_t wanted = segment.used_count + segment.tail();
    if (slots_given(file, segment) > wanted) punch_gaps(file, segment);
    const auto held =
        std::clamp<std::uint64_t>(slots_given(file, segment), wanted, segment.capacity);
    SegmentRecord& record = index_.record(segment.number);
    record.capacity = segment.capacity;
    record.live = segment.used_count;
    record.held = static_cast<std::uint32_t>(held);
    record.number = segment.number;
    index_.header().held_bytes += held * kSlotBytes;
  }

  // By the file system, for the file.
  static std::uint64_t slots_given(int file, const Segment& segment) {
    struct stat status{};
    if (::fstat(file, &status) != 0) return segment.capacity;
    return slots_for(static_cast<std::uint64_t>(status.st_blocks) * 512);
  }

  static void punch_gaps(int file, const Segment& segment) {
    const auto end = segment.used.begin() + segment.end;
    for (auto gap = std::find(segment.used.begin(), end, false); gap != end;) {
      const auto after = std::find(gap, end, true);
      if (::fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                      (gap - segment.used.begin()) * static_cast<off_t>(kSlotBytes),
                      (after - gap) * static_cast<off_t>(kSlotBytes)) != 0) {
        return;  // this file system has no holes
      }
      gap = std::find(after, end, false);
    }
  }

  const Folder& folder_;
  const SharedIndex& index_;
  const bool restarted_;
  std::vector<Segment> segments_;
  std::vector<std::string> superfluous_;
  std::vector<std::uint32_t> by_record_;  // 1 + place in segments_; 0: none
};

}  // namespace

void empty_what_cannot_be_right(const Folder& folder, const SharedIndex& index) {
  Recovery(folder, index, false).check_entries();
}

void recover(const Folder& folder, const SharedIndex& index, const std::string& boot) {
  Header& header = index.header();
  const std::string_view before(header.boot.data(),
                                ::strnlen(header.boot.data(), header.boot.size()));
  Recovery recovery(folder, index, boot.empty() || before != boot);
  recovery.check_entries();
  recovery.settle_segments();
  header.boot.fill('\0');
  std::copy(boot.begin(), boot.end(), header.boot.begin());
}

}  // namespace flowos::feed::cache
