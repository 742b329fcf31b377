// A folder of this machine, mounted as if it were far away.
//
//   slowfs [--round-trip-ms 1] [--mbit 1000] FOLDER MOUNTPOINT
//
// To open or stat a file by its path costs one round trip, every time (close-to-open consistency,
// as of NFS, and of Lustre with its intent lock); to list a folder one per 1000 entries; a read
// costs one and its turn on a link of `--mbit` that all share, first in first out. Folders, once
// looked up, stay known. Nothing read is kept over an open. Any number of requests wait at once:
// answers lie in a queue until they are due, so that no thread is held. Read-only.
//
// Prints a line of JSON once it is mounted, and one with what went over the link for each line that
// it reads. At the end of its standard input, and on SIGTERM, it ends, and fusermount3 unmounts it,
// as it does when this is killed.
#define FUSE_USE_VERSION 314
#include <dirent.h>
#include <fcntl.h>
#include <fuse3/fuse_lowlevel.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstdarg>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <queue>
#include <string>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "link.h"
#include "words.h"

namespace {

using flowos::bench::Clock;
using flowos::bench::Link;

constexpr double kForever = 3600;
constexpr std::uint64_t kEntriesPerRoundTrip = 1000;
constexpr unsigned kWorkers = 8, kRepliers = 2, kMostInFlight = 1024;

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

// The path of every file and folder that was looked up, by its number on the file system below:
// that stays the same from mount to mount.
class Paths {
 public:
  void remember(fuse_ino_t number, const std::string& path) {
    const std::lock_guard<std::mutex> guard(lock_);
    paths_.try_emplace(number, path);
  }
  std::string path_of(fuse_ino_t number) {
    if (number == FUSE_ROOT_ID) return ".";
    const std::lock_guard<std::mutex> guard(lock_);
    return paths_.at(number);
  }

 private:
  std::mutex lock_;
  std::unordered_map<fuse_ino_t, std::string> paths_;
};

struct Store {
  int folder;
  Link link;
  Paths paths;
  Later later{kRepliers};
};

Store& store_of(fuse_req_t request) { return *static_cast<Store*>(fuse_req_userdata(request)); }

void init(void*, fuse_conn_info* connection) {
  connection->max_background = kMostInFlight;
  connection->congestion_threshold = kMostInFlight;
  std::cout << "{\"mounted\": true}" << std::endl;
}

void lookup(fuse_req_t request, fuse_ino_t parent, const char* name) {
  Store& store = store_of(request);
  const std::string path = store.paths.path_of(parent) + "/" + name;
  fuse_entry_param entry{};
  const int error =
      fstatat(store.folder, path.c_str(), &entry.attr, AT_SYMLINK_NOFOLLOW) != 0 ? errno : 0;
  if (error == 0) {
    entry.ino = entry.attr.st_ino;
    store.paths.remember(entry.ino, path);
    entry.attr_timeout = kForever;
    entry.entry_timeout = S_ISDIR(entry.attr.st_mode) ? kForever : 0;
  }
  store.later.at(store.link.answered(), [request, entry, error] {
    if (error == 0) {
      fuse_reply_entry(request, &entry);
    } else {
      fuse_reply_err(request, error);
    }
  });
}

void getattr(fuse_req_t request, fuse_ino_t number, fuse_file_info*) {
  Store& store = store_of(request);
  struct stat found{};
  const std::string path = store.paths.path_of(number);
  const int error =
      fstatat(store.folder, path.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0 ? errno : 0;
  found.st_ino = number;
  store.later.at(store.link.answered(), [request, found, error] {
    if (error == 0) {
      fuse_reply_attr(request, &found, kForever);
    } else {
      fuse_reply_err(request, error);
    }
  });
}

// Costs nothing by itself: the lookup before it had the same round trip.
void open_file(fuse_req_t request, fuse_ino_t number, fuse_file_info* file) {
  Store& store = store_of(request);
  const int fd = openat(store.folder, store.paths.path_of(number).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    fuse_reply_err(request, errno);
    return;
  }
  file->fh = static_cast<std::uint64_t>(fd);
  file->noflush = 1;
  if (fuse_reply_open(request, file) != 0) close(fd);
}

void read_file(fuse_req_t request, fuse_ino_t, std::size_t size, off_t offset,
               fuse_file_info* file) {
  Store& store = store_of(request);
  const auto bytes = std::make_shared<std::vector<char>>(size);
  const ssize_t got = pread(static_cast<int>(file->fh), bytes->data(), size, offset);
  if (got < 0) {
    fuse_reply_err(request, errno);
    return;
  }
  bytes->resize(static_cast<std::size_t>(got));
  store.later.at(store.link.carried(bytes->size()),
                 [request, bytes] { fuse_reply_buf(request, bytes->data(), bytes->size()); });
}

void release_file(fuse_req_t request, fuse_ino_t, fuse_file_info* file) {
  close(static_cast<int>(file->fh));
  fuse_reply_err(request, 0);
}

struct Entry {
  std::string name;
  unsigned type;
  ino_t number;
};
using Entries = std::vector<Entry>;

void open_folder(fuse_req_t request, fuse_ino_t number, fuse_file_info* file) {
  Store& store = store_of(request);
  const int fd =
      openat(store.folder, store.paths.path_of(number).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* folder = fd < 0 ? nullptr : fdopendir(fd);
  if (folder == nullptr) {
    fuse_reply_err(request, errno);
    return;
  }
  auto* entries = new Entries;
  while (const dirent* found = readdir(folder)) {
    entries->push_back({found->d_name, found->d_type, found->d_ino});
  }
  closedir(folder);
  file->fh = reinterpret_cast<std::uint64_t>(entries);
  const Clock::time_point due = store.link.answered(1 + entries->size() / kEntriesPerRoundTrip);
  store.later.at(due, [request, opened = *file, entries] {
    if (fuse_reply_open(request, &opened) != 0) delete entries;
  });
}

void read_folder(fuse_req_t request, fuse_ino_t, std::size_t size, off_t offset,
                 fuse_file_info* file) {
  const Entries& entries = *reinterpret_cast<const Entries*>(file->fh);
  std::vector<char> bytes(size);
  std::size_t used = 0;
  for (auto i = static_cast<std::size_t>(offset); i < entries.size(); ++i) {
    struct stat kind{};
    kind.st_mode = DTTOIF(entries[i].type);
    kind.st_ino = entries[i].number;
    const std::size_t needed =
        fuse_add_direntry(request, bytes.data() + used, size - used, entries[i].name.c_str(), &kind,
                          static_cast<off_t>(i + 1));
    if (needed > size - used) break;
    used += needed;
  }
  fuse_reply_buf(request, bytes.data(), used);
}

void release_folder(fuse_req_t request, fuse_ino_t, fuse_file_info* file) {
  delete reinterpret_cast<Entries*>(file->fh);
  fuse_reply_err(request, 0);
}

fuse_lowlevel_ops operations() {
  fuse_lowlevel_ops all{};
  all.init = init;
  all.lookup = lookup;
  all.getattr = getattr;
  all.open = open_file;
  all.read = read_file;
  all.release = release_file;
  all.opendir = open_folder;
  all.readdir = read_folder;
  all.releasedir = release_folder;
  return all;
}

std::string libfuse_said;

void remember(fuse_log_level, const char* format, std::va_list values) {
  char line[512];
  std::vsnprintf(line, sizeof line, format, values);
  libfuse_said.assign(line, std::strcspn(line, "\n"));
}

// The signals that end this are for the first thread alone, which waits for them.
void take_signals(int how) {
  sigset_t ending;
  sigemptyset(&ending);
  for (const int signal : {SIGHUP, SIGINT, SIGTERM}) sigaddset(&ending, signal);
  pthread_sigmask(how, &ending, nullptr);
}

void serve(fuse_session* session, const Link& link) {
  std::thread([&link] {
    flowos::bench::serve_questions([&link] {
      return "{\"requests\": " + std::to_string(link.requests()) +
             ", \"reads\": " + std::to_string(link.reads()) +
             ", \"bytes\": " + std::to_string(link.bytes()) + "}";
    });
    kill(getpid(), SIGTERM);
  }).detach();
  take_signals(SIG_UNBLOCK);
  fuse_loop_config* loop = fuse_loop_cfg_create();
  fuse_loop_cfg_set_max_threads(loop, kWorkers);
  fuse_loop_cfg_set_idle_threads(loop, kWorkers);
  fuse_session_loop_mt(session, loop);
  fuse_loop_cfg_destroy(loop);
}

}  // namespace

int main(int count, char** words) {
  const flowos::bench::Words asked(count, words, {{"round-trip-ms", 1}, {"mbit", 1000}}, 2,
                                   "slowfs [--round-trip-ms 1] [--mbit 1000] FOLDER MOUNTPOINT");
  const int folder = open(asked[0].c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) flowos::bench::give_up("slowfs: " + asked[0] + ": " + std::strerror(errno));
  const std::chrono::nanoseconds round_trip(
      static_cast<std::int64_t>(1e6 * asked.number("round-trip-ms")));
  take_signals(SIG_BLOCK);
  // Not on the stack: a thread that waits for questions may outlive main.
  auto* store = new Store{folder, {1e6 / 8 * asked.number("mbit"), round_trip}, {}};

  fuse_set_log_func(remember);
  const char* options[] = {"slowfs", "-o", "ro,fsname=slowfs,auto_unmount"};
  fuse_args arguments = FUSE_ARGS_INIT(3, const_cast<char**>(options));
  const fuse_lowlevel_ops all = operations();
  fuse_session* session = fuse_session_new(&arguments, &all, sizeof all, store);
  if (session == nullptr || fuse_set_signal_handlers(session) != 0 ||
      fuse_session_mount(session, asked[1].c_str()) != 0) {
    flowos::bench::give_up("slowfs: cannot mount at " + asked[1] + ": " + libfuse_said);
  }
  serve(session, store->link);
  std::_Exit(0);  // fusermount3 sees it and unmounts; requests that still wait have nobody any more
}
