// Mounts a folder of this machine as if it were remote.
//
//   slowfs [--round-trip-ms 1] [--mbit 1000] [--keep-pages 0] FOLDER MOUNTPOINT
//
// Opening or stat of a file by its path costs one round trip, every time (close-to-open
// consistency, as in NFS, and in Lustre with its intent lock); listing a folder one per 1000
// entries; a read costs one, and its time on a shared link of `--mbit`, first in first out. Folders
// are looked up once. With --keep-pages 1 pages are kept over an open, as NFS and Lustre do as long
// as the data fit into memory; without it they are dropped, as if the data were larger than the
// memory. Any number of requests wait at once: answers are queued until they are due, so that no
// thread is blocked. Read-only.
//
// Prints a line of JSON once it is mounted, and one with the link's traffic for each line of its
// standard input. At the end of its standard input, and on SIGTERM, it exits, and fusermount3
// unmounts it, as it does when this is killed.
#include <dirent.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <memory>
#include <mutex>
#include <queue>
#include <string>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fuse_device.h"
#include "link.h"
#include "words.h"

namespace {

using flowos::bench::Clock;
using flowos::bench::FuseDevice;
using flowos::bench::Link;
using flowos::bench::Request;

constexpr std::uint64_t kForever = 3600;  // seconds
constexpr std::uint64_t kEntriesPerRoundTrip = 1000;
constexpr unsigned kWorkers = 8, kRepliers = 2;
constexpr std::uint16_t kMostInFlight = 1024, kPagesPerRead = 256;
constexpr std::uint32_t kMinor = 31;  // version of the protocol

// Answers, each sent when it is due.
class Later {
 public:
  explicit Later(unsigned threads) {
    for (unsigned i = 0; i < threads; ++i) threads_.emplace_back([this] { send(); });
  }
  ~Later() {
    {
      const std::lock_guard<std::mutex> guard(lock_);
      ends_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  Later(const Later&) = delete;
  Later& operator=(const Later&) = delete;

  void at(Clock::time_point due, std::function<void()> answer) {
    const std::lock_guard<std::mutex> guard(lock_);
    const bool first = queue_.empty() || due < queue_.top().due;
    queue_.push({due, number_++, std::move(answer)});
    if (first) changed_.notify_one();
  }

 private:
  struct Answer {
    Clock::time_point due;
    std::uint64_t number;
    std::function<void()> send;
    bool operator<(const Answer& other) const {
      return std::tie(other.due, other.number) < std::tie(due, number);  // earliest on top
    }
  };

  void send() {
    std::unique_lock<std::mutex> hold(lock_);
    while (!ends_) {
      if (queue_.empty()) {
        changed_.wait(hold);
      } else if (const Clock::time_point due = queue_.top().due; Clock::now() < due) {
        changed_.wait_until(hold, due);
      } else {
        const std::function<void()> answer = std::move(const_cast<Answer&>(queue_.top()).send);
        queue_.pop();
        if (!queue_.empty()) changed_.notify_one();
        hold.unlock();
        answer();
        hold.lock();
      }
    }
  }

  std::mutex lock_;
  std::condition_variable changed_;
  std::priority_queue<Answer> queue_;
  std::uint64_t number_ = 0;
  bool ends_ = false;
  std::vector<std::thread> threads_;
};

// The path of every file and folder that was looked up, by its number on the underlying file
// system, which stays the same from mount to mount.
class Paths {
 public:
  void remember(std::uint64_t number, const std::string& path) {
    const std::lock_guard<std::mutex> guard(lock_);
    paths_.try_emplace(number, path);
  }
  std::string path_of(std::uint64_t number) {
    if (number == FUSE_ROOT_ID) return ".";
    const std::lock_guard<std::mutex> guard(lock_);
    return paths_.at(number);
  }

 private:
  std::mutex lock_;
  std::unordered_map<std::uint64_t, std::string> paths_;
};

struct Entry {
  std::string name;
  unsigned type;
  ino_t number;
};
using Entries = std::vector<Entry>;

// Entries of folders at the time they were opened.
class Listings {
 public:
  std::uint64_t keep(std::shared_ptr<const Entries> entries) {
    const std::lock_guard<std::mutex> guard(lock_);
    kept_[++last_] = std::move(entries);
    return last_;
  }
  std::shared_ptr<const Entries> at(std::uint64_t number) {
    const std::lock_guard<std::mutex> guard(lock_);
    return kept_.at(number);
  }
  void forget(std::uint64_t number) {
    const std::lock_guard<std::mutex> guard(lock_);
    kept_.erase(number);
  }

 private:
  std::mutex lock_;
  std::uint64_t last_ = 0;
  std::unordered_map<std::uint64_t, std::shared_ptr<const Entries>> kept_;
};

fuse_attr attributes_of(const struct stat& found) {
  fuse_attr reply{};
  reply.ino = found.st_ino;
  reply.size = static_cast<std::uint64_t>(found.st_size);
  reply.blocks = static_cast<std::uint64_t>(found.st_blocks);
  reply.atime = static_cast<std::uint64_t>(found.st_atim.tv_sec);
  reply.mtime = static_cast<std::uint64_t>(found.st_mtim.tv_sec);
  reply.ctime = static_cast<std::uint64_t>(found.st_ctim.tv_sec);
  reply.atimensec = static_cast<std::uint32_t>(found.st_atim.tv_nsec);
  reply.mtimensec = static_cast<std::uint32_t>(found.st_mtim.tv_nsec);
  reply.ctimensec = static_cast<std::uint32_t>(found.st_ctim.tv_nsec);
  reply.mode = found.st_mode;
  reply.nlink = static_cast<std::uint32_t>(found.st_nlink);
  reply.uid = found.st_uid;
  reply.gid = found.st_gid;
  reply.blksize = static_cast<std::uint32_t>(found.st_blksize);
  return reply;
}

class Store {
 public:
  Store(int folder, const std::string& mountpoint, double bytes_per_second,
        std::chrono::nanoseconds round_trip, bool keep_pages)
      : folder_(folder),
        keep_pages_(keep_pages),
        link_(bytes_per_second, round_trip),
        device_(mountpoint) {}

  // Until it is unmounted.
  void serve() {
    Request request{};
    while (device_.next(request)) handle(request);
  }
  const Link& link() const { return link_; }

 private:
  void handle(const Request& request) {
    const std::uint64_t unique = request.head.unique;
    switch (request.head.opcode) {
      case FUSE_INIT:
        return begin(request);
      case FUSE_LOOKUP:
        return lookup(request);
      case FUSE_GETATTR:
        return get_attributes(request);
      case FUSE_OPEN:
        return open_file(request);
      case FUSE_READ:
        return read_file(request);
      case FUSE_OPENDIR:
        return open_folder(request);
      case FUSE_READDIR:
        return read_folder(request);
      case FUSE_RELEASE:
        close(static_cast<int>(request.as<fuse_release_in>().fh));
        return device_.refuse(unique, 0);
      case FUSE_RELEASEDIR:
        listings_.forget(request.as<fuse_release_in>().fh);
        return device_.refuse(unique, 0);
      case FUSE_FORGET:
      case FUSE_BATCH_FORGET:
        return;  // has no answer
      case FUSE_DESTROY:
        return device_.refuse(unique, 0);
      default:
        return device_.refuse(unique, ENOSYS);  // the kernel then works without it
    }
  }

  void begin(const Request& request) {
    const auto asked = request.as<fuse_init_in>();
    fuse_init_out reply{};
    reply.major = FUSE_KERNEL_VERSION;
    reply.minor = kMinor;
    reply.max_readahead = asked.max_readahead;
    reply.flags = asked.flags & (FUSE_ASYNC_READ | FUSE_PARALLEL_DIROPS | FUSE_MAX_PAGES);
    reply.max_background = reply.congestion_threshold = kMostInFlight;
    reply.max_write = 4096;
    reply.max_pages = kPagesPerRead;
    reply.time_gran = 1;
    device_.answer(request.head.unique, reply);
  }

  // Error and attributes of a path.
  std::pair<int, struct stat> look_at(const std::string& path) const {
    struct stat found{};
    const int failed = fstatat(folder_, path.c_str(), &found, AT_SYMLINK_NOFOLLOW);
    return {failed != 0 ? errno : 0, found};
  }

  void lookup(const Request& request) {
    const std::string path = paths_.path_of(request.head.nodeid) + "/" + request.name();
    const auto [error, found] = look_at(path);
    fuse_entry_out reply{};
    if (error == 0) {
      paths_.remember(found.st_ino, path);
      reply.nodeid = found.st_ino;
      reply.attr = attributes_of(found);
      reply.attr_valid = kForever;
      reply.entry_valid = S_ISDIR(found.st_mode) ? kForever : 0;
    }
    later_.at(link_.answered(), [this, reply, error = error, unique = request.head.unique] {
      if (error == 0) {
        device_.answer(unique, reply);
      } else {
        device_.refuse(unique, error);
      }
    });
  }

  void get_attributes(const Request& request) {
    const auto [error, found] = look_at(paths_.path_of(request.head.nodeid));
    fuse_attr_out reply{};
    reply.attr = attributes_of(found);
    reply.attr.ino = request.head.nodeid;
    reply.attr_valid = kForever;
    later_.at(link_.answered(), [this, reply, error = error, unique = request.head.unique] {
      if (error == 0) {
        device_.answer(unique, reply);
      } else {
        device_.refuse(unique, error);
      }
    });
  }

  // Costs nothing by itself: the lookup before it had the same round trip.
  void open_file(const Request& request) {
    const std::string path = paths_.path_of(request.head.nodeid);
    const int fd = openat(folder_, path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return device_.refuse(request.head.unique, errno);
    fuse_open_out reply{};
    reply.fh = static_cast<std::uint64_t>(fd);
    reply.open_flags = FOPEN_NOFLUSH | (keep_pages_ ? FOPEN_KEEP_CACHE : 0);
    device_.answer(request.head.unique, reply);
  }

  void read_file(const Request& request) {
    const auto asked = request.as<fuse_read_in>();
    const auto bytes = std::make_shared<std::vector<char>>(asked.size);
    const ssize_t got = pread(static_cast<int>(asked.fh), bytes->data(), asked.size,
                              static_cast<off_t>(asked.offset));
    if (got < 0) return device_.refuse(request.head.unique, errno);
    bytes->resize(static_cast<std::size_t>(got));
    later_.at(link_.carried(bytes->size()), [this, bytes, unique = request.head.unique] {
      device_.answer(unique, 0, bytes->data(), bytes->size());
    });
  }

  void open_folder(const Request& request) {
    const std::string path = paths_.path_of(request.head.nodeid);
    const int fd = openat(folder_, path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR* folder = fd < 0 ? nullptr : fdopendir(fd);
    if (folder == nullptr) return device_.refuse(request.head.unique, errno);
    auto entries = std::make_shared<Entries>();
    while (const dirent* found = readdir(folder)) {
      entries->push_back({found->d_name, found->d_type, found->d_ino});
    }
    closedir(folder);
    fuse_open_out reply{};
    const std::uint64_t round_trips = 1 + entries->size() / kEntriesPerRoundTrip;
    reply.fh = listings_.keep(std::move(entries));
    later_.at(link_.answered(round_trips),
              [this, reply, unique = request.head.unique] { device_.answer(unique, reply); });
  }

  void read_folder(const Request& request) {
    const auto asked = request.as<fuse_read_in>();
    const std::shared_ptr<const Entries> listing = listings_.at(asked.fh);
    const Entries& entries = *listing;
    std::vector<char> bytes;
    for (std::size_t i = asked.offset; i < entries.size(); ++i) {
      const std::string& name = entries[i].name;
      fuse_dirent head{};
      head.ino = entries[i].number;
      head.off = i + 1;
      head.namelen = static_cast<std::uint32_t>(name.size());
      head.type = entries[i].type;
      const std::size_t size = FUSE_DIRENT_ALIGN(FUSE_NAME_OFFSET + name.size());
      const std::size_t place = bytes.size();
      if (place + size > asked.size) break;
      bytes.resize(place + size);
      std::memcpy(bytes.data() + place, &head, FUSE_NAME_OFFSET);
      std::memcpy(bytes.data() + place + FUSE_NAME_OFFSET, name.data(), name.size());
    }
    device_.answer(request.head.unique, 0, bytes.data(), bytes.size());
  }

  const int folder_;
  const bool keep_pages_;
  Link link_;
  Paths paths_;
  Listings listings_;
  FuseDevice device_;
  Later later_{kRepliers};
};

}  // namespace

int main(int count, char** words) {
  const flowos::bench::Words asked(
      count, words, {{"round-trip-ms", 1}, {"mbit", 1000}, {"keep-pages", 0}}, 2,
      "slowfs [--round-trip-ms 1] [--mbit 1000] [--keep-pages 0] FOLDER MOUNTPOINT");
  const int folder = open(asked[0].c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) flowos::bench::give_up("slowfs: " + asked[0] + ": " + std::strerror(errno));
  const std::chrono::nanoseconds round_trip(
      static_cast<std::int64_t>(1e6 * asked.number("round-trip-ms")));
  // Not on the stack: its threads may outlive main.
  auto* store = new Store(folder, asked[1], 1e6 / 8 * asked.number("mbit"), round_trip,
                          asked.number("keep-pages") != 0);
  for (unsigned i = 0; i < kWorkers; ++i) {
    std::thread([store] {
      store->serve();
      std::_Exit(0);  // it was unmounted
    }).detach();
  }
  std::cout << "{\"mounted\": true}\n" << std::flush;
  flowos::bench::serve_questions([&link = store->link()] {
    return "{\"requests\": " + std::to_string(link.requests()) +
           ", \"reads\": " + std::to_string(link.reads()) +
           ", \"bytes\": " + std::to_string(link.bytes()) + "}";
  });
  std::_Exit(0);  // requests in the queue have no reader any more
}
