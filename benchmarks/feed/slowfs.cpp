// Mounts a folder of this machine as if it were remote.
//
//   slowfs [--round-trip-ms 1] [--mbit 1000] [--keep-pages 0] [--writable 0] FOLDER MOUNTPOINT
//
// Opening or stat of a file by its path costs one round trip, every time (close-to-open
// consistency, as in NFS, and in Lustre with its intent lock); listing a folder one per 1000
// entries; a read costs one, and its time on a shared link of `--mbit`, first in first out. Folders
// are looked up once. With --keep-pages 1 pages are kept over an open, as NFS and Lustre do as long
// as the data fit into memory; without it they are dropped, as if the data were larger than the
// memory. Any number of requests wait at once: answers are queued until they are due, so that no
// thread is blocked.
//
// Read-only, but with --writable 1: then files and folders are also made, written, renamed and
// removed, which costs nothing by itself. What others change of a file is seen once it is opened
// again. MOUNTPOINT may be FOLDER.
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

#include "changes.h"
#include "folders.h"
#include "fuse_device.h"
#include "later.h"
#include "link.h"
#include "words.h"

namespace {

using flowos::bench::attributes_of;
using flowos::bench::Entries;
using flowos::bench::FuseDevice;
using flowos::bench::Later;
using flowos::bench::Link;
using flowos::bench::Listings;
using flowos::bench::Paths;
using flowos::bench::Request;

constexpr std::uint64_t kForever = 3600;  // seconds
constexpr std::uint64_t kEntriesPerRoundTrip = 1000;
constexpr unsigned kWorkers = 8, kRepliers = 2;
constexpr std::uint16_t kMostInFlight = 1024, kPagesPerRead = 256;
constexpr std::uint32_t kMinor = 31;  // version of the protocol

class Store {
 public:
  Store(int folder, const std::string& mountpoint, double bytes_per_second,
        std::chrono::nanoseconds round_trip, bool keep_pages, bool writable)
      : folder_(folder),
        keep_pages_(keep_pages),
        link_(bytes_per_second, round_trip),
        device_(mountpoint, writable) {}

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
      case FUSE_STATFS:
        return say_room(request);
      case FUSE_DESTROY:
        return device_.refuse(unique, 0);
      default:
        return change(request);
    }
  }

  // The kernel asks for it on a writable mount alone.
  void change(const Request& request) {
    const std::uint64_t unique = request.head.unique;
    switch (request.head.opcode) {
      case FUSE_MKDIR:
        return make_folder(request);
      case FUSE_CREATE:
        return make_file(request);
      case FUSE_WRITE:
        return write_file(request);
      case FUSE_SETATTR:
        return set_attributes(request);
      case FUSE_RENAME:
        return rename_file(request);
      case FUSE_UNLINK:
      case FUSE_RMDIR: {
        const int flag = request.head.opcode == FUSE_RMDIR ? AT_REMOVEDIR : 0;
        const int failed = unlinkat(folder_, path_in(request, 0).c_str(), flag);
        return device_.refuse(unique, failed != 0 ? errno : 0);
      }
      default:
        return device_.refuse(unique, ENOSYS);  // the kernel then works without it
    }
  }

  // Of the file that a request names after so many bytes, in the folder that it is about.
  std::string path_in(const Request& request, std::size_t after) {
    return paths_.path_of(request.head.nodeid) + "/" + request.name(after);
  }

  void say_room(const Request& request) {
    int error = 0;
    fuse_statfs_out reply{};
    reply.st = flowos::bench::room_of(folder_, error);
    if (error != 0) return device_.refuse(request.head.unique, error);
    device_.answer(request.head.unique, reply);
  }

  void make_folder(const Request& request) {
    const auto asked = request.as<fuse_mkdir_in>();
    const std::string path = path_in(request, sizeof asked);
    if (const int error = flowos::bench::make_folder(folder_, path, asked); error != 0) {
      return device_.refuse(request.head.unique, error);
    }
    device_.answer(request.head.unique, entry_of(path).second);
  }

  void make_file(const Request& request) {
    const auto asked = request.as<fuse_create_in>();
    const std::string path = path_in(request, sizeof asked);
    int made = -1;
    if (const int error = flowos::bench::make_file(folder_, path, asked, made); error != 0) {
      return device_.refuse(request.head.unique, error);
    }
    struct {
      fuse_entry_out entry;
      fuse_open_out open;
    } reply{entry_of(path).second, opened(made)};
    device_.answer(request.head.unique, reply);
  }

  void write_file(const Request& request) {
    fuse_write_out reply{};
    if (const int error = flowos::bench::write_file(request, reply.size); error != 0) {
      return device_.refuse(request.head.unique, error);
    }
    device_.answer(request.head.unique, reply);
  }

  void set_attributes(const Request& request) {
    const std::string path = paths_.path_of(request.head.nodeid);
    const auto asked = request.as<fuse_setattr_in>();
    if (const int error = flowos::bench::set_attributes(folder_, path, asked); error != 0) {
      return device_.refuse(request.head.unique, error);
    }
    fuse_attr_out reply{};
    reply.attr = attributes_of(look_at(path).second);
    reply.attr_valid = kForever;
    device_.answer(request.head.unique, reply);
  }

  void rename_file(const Request& request) {
    const auto asked = request.as<fuse_rename_in>();
    const std::string from = path_in(request, sizeof asked);
    const std::string name =
        request.name(sizeof asked + std::strlen(request.name(sizeof asked)) + 1);
    const std::string to = paths_.path_of(asked.newdir) + "/" + name;
    const int failed = renameat(folder_, from.c_str(), folder_, to.c_str());
    device_.refuse(request.head.unique, failed != 0 ? errno : 0);
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

  // Error, and what a lookup answers.
  std::pair<int, fuse_entry_out> entry_of(const std::string& path) {
    const auto [error, found] = look_at(path);
    fuse_entry_out reply{};
    if (error == 0) {
      reply.nodeid = paths_.number_of(path, found.st_ino);
      reply.attr = attributes_of(found);
      reply.attr_valid = kForever;
      reply.entry_valid = S_ISDIR(found.st_mode) ? kForever : 0;
    }
    return {error, reply};
  }

  fuse_open_out opened(int file) const {
    fuse_open_out reply{};
    reply.fh = static_cast<std::uint64_t>(file);
    reply.open_flags = FOPEN_NOFLUSH | (keep_pages_ ? FOPEN_KEEP_CACHE : 0);
    return reply;
  }

  void lookup(const Request& request) {
    const auto [error, reply] = entry_of(path_in(request, 0));
    later_.at(link_.answered(), [this, reply = reply, error = error, unique = request.head.unique] {
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
    const int how = static_cast<int>(request.as<fuse_open_in>().flags) & O_ACCMODE;
    const int fd = openat(folder_, path.c_str(), how | O_CLOEXEC);
    if (fd < 0) return device_.refuse(request.head.unique, errno);
    device_.answer(request.head.unique, opened(fd));
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
      count, words, {{"round-trip-ms", 1}, {"mbit", 1000}, {"keep-pages", 0}, {"writable", 0}}, 2,
      "slowfs [--round-trip-ms 1] [--mbit 1000] [--keep-pages 0] [--writable 0] FOLDER MOUNTPOINT");
  const int folder = open(asked[0].c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) flowos::bench::give_up("slowfs: " + asked[0] + ": " + std::strerror(errno));
  const std::chrono::nanoseconds round_trip(
      static_cast<std::int64_t>(1e6 * asked.number("round-trip-ms")));
  // Not on the stack: its threads may outlive main.
  auto* store = new Store(folder, asked[1], 1e6 / 8 * asked.number("mbit"), round_trip,
                          asked.number("keep-pages") != 0, asked.number("writable") != 0);
  for (unsigned i = 0; i < kWorkers; ++i) {
    std::thread([store] {
      store->serve();
      std::_Exit(0);  // it was unmounted
    }).detach();
  }
  struct stat known{};
  stat(asked[1].c_str(), &known);  // until its owner is known, none may write in a user namespace
  std::cout << "{\"mounted\": true}\n" << std::flush;
  flowos::bench::serve_questions([&link = store->link()] {
    return "{\"requests\": " + std::to_string(link.requests()) +
           ", \"reads\": " + std::to_string(link.reads()) +
           ", \"bytes\": " + std::to_string(link.bytes()) + "}";
  });
  std::_Exit(0);  // requests in the queue have no reader any more
}
