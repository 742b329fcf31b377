#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/errors.h"
#include "base/parallel.h"
#include "base/progress.h"
#include "base/source_file.h"
#include "base/unique_fd.h"
#include "catalog/catalog.h"
#include "catalog/stamp.h"

namespace flowos::feed {
namespace {

// Large enough for a few thousand names, which is what servers send at a time.
constexpr std::size_t entries_bytes = 256 << 10;

struct Folder {
  Folder(std::string path_, const Folder* parent_) : path(std::move(path_)), parent(parent_) {}

  std::string path;  // below the root; "" is the root
  const Folder* parent;
  dev_t device = 0;
  ino_t inode = 0;
  Catalog::Stamp stamp{};
  std::string files;  // their names, each ended by a zero
  std::uint64_t file_count = 0;
  std::vector<std::unique_ptr<Folder>> folders;
  std::uint32_t group = 0;
  bool is_loop = false;  // it is one of the folders that it lies in

  std::string_view own_name() const {
    return std::string_view(path).substr(path.rfind('/') + 1);  // npos + 1 is 0
  }
};

bool is_one_of_its_parents(const Folder& folder) {
  for (const Folder* above = folder.parent; above != nullptr; above = above->parent) {
    if (above->inode == folder.inode && above->device == folder.device) return true;
  }
  return false;
}

enum class EntryKind : std::uint8_t { file, folder, other };

EntryKind kind_of(int folder, const dirent64& entry) {
  if (entry.d_type == DT_REG) return EntryKind::file;
  if (entry.d_type == DT_DIR) return EntryKind::folder;
  if (entry.d_type != DT_LNK && entry.d_type != DT_UNKNOWN) return EntryKind::other;
  struct stat state{};
  int done = 0;
  do {
    done = ::fstatat(folder, entry.d_name, &state, 0);
  } while (done != 0 && errno == EINTR);
  if (done != 0 || S_ISREG(state.st_mode)) return EntryKind::file;
  return S_ISDIR(state.st_mode) ? EntryKind::folder : EntryKind::other;
}

// In byte order, once more as names ended by zeros.
std::string sorted(const std::string& names, std::uint64_t count) {
  std::vector<std::string_view> each;
  each.reserve(count);
  for (std::size_t at = 0; at < names.size(); at += each.back().size() + 1) {
    each.emplace_back(names.c_str() + at);
  }
  std::ranges::sort(each);
  std::string in_order;
  in_order.reserve(names.size());
  for (const std::string_view name : each) (in_order += name) += '\0';
  return in_order;
}

// All folders below a root, read by many threads: each takes a folder that waits.
class Walk {
 public:
  Walk(const std::string& root, Progress& progress, const FilesFound& files_found)
      : root_(root),
        progress_(progress),
        files_found_(files_found),
        root_folder_(open_root(root)) {}

  std::unique_ptr<Folder> run(unsigned threads) {
    auto top = std::make_unique<Folder>("", nullptr);
    waiting_.push_back(top.get());
    unfinished_ = 1;
    run_in_threads(threads, [this] { work(); });
    if (failure_) std::rethrow_exception(failure_);
    return top;
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return !waiting_.empty() || unfinished_ == 0 || failure_; });
      if (waiting_.empty() || failure_) return;
      Folder& folder = *waiting_.back();
      waiting_.pop_back();
      lock.unlock();
      const std::exception_ptr failure = try_to_read(folder);
      lock.lock();
      if (failure && !failure_) failure_ = failure;
      for (const auto& below : folder.folders) waiting_.push_back(below.get());
      unfinished_ += folder.folders.size();
      --unfinished_;
      changed_.notify_all();
    }
  }

  std::exception_ptr try_to_read(Folder& folder) {
    try {
      read(folder);
      return nullptr;
    } catch (...) {
      return std::current_exception();
    }
  }

  void read(Folder& folder) {
    const std::string& path = folder.path;
    const Descriptor opened =
        open_below(root_folder_.get(), path.empty() ? "." : path, O_RDONLY | O_DIRECTORY);
    struct stat state{};
    if (!opened || ::fstat(opened.get(), &state) != 0) refuse(path, errno);
    folder.device = state.st_dev;
    folder.inode = state.st_ino;
    folder.is_loop = is_one_of_its_parents(folder);
    if (folder.is_loop) return;
    // Before the entries: what comes while they are read makes the stamp differ.
    folder.stamp = stamp_of(path, state);
    read_entries(folder, opened.get());
    folder.files = sorted(folder.files, folder.file_count);
    std::ranges::sort(folder.folders, {}, [](const auto& f) { return f->path + "/"; });
  }

  void read_entries(Folder& folder, int opened) {
    const auto buffer = std::make_unique_for_overwrite<std::byte[]>(entries_bytes);
    while (true) {
      if (progress_.stopped) {
        throw FeedError("the listing of " + shown(root_) + " was stopped");
      }
      const ssize_t got = ::getdents64(opened, buffer.get(), entries_bytes);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) refuse(folder.path, errno);
      if (got == 0) return;
      const std::uint64_t before = folder.file_count;
      const std::size_t bytes_before = folder.files.size();
      for (ssize_t at = 0; at < got;) {
        const auto& entry = *reinterpret_cast<const dirent64*>(buffer.get() + at);
        at += entry.d_reclen;
        take(folder, opened, entry);
      }
      progress_.found += folder.file_count - before;
      if (files_found_) {
        files_found_(folder.path, std::string_view(folder.files).substr(bytes_before));
      }
    }
  }

  static void take(Folder& folder, int opened, const dirent64& entry) {
    const char* name = entry.d_name;
    if (name[0] == '.') return;
    switch (kind_of(opened, entry)) {
      case EntryKind::file:
        (folder.files += name) += '\0';
        ++folder.file_count;
        return;
      case EntryKind::folder: {
        std::string path = folder.path.empty() ? name : folder.path + "/" + name;
        folder.folders.push_back(std::make_unique<Folder>(std::move(path), &folder));
        return;
      }
      case EntryKind::other:
        return;
    }
  }

  [[noreturn]] void refuse(const std::string& path, int error) const {
    throw FeedError("cannot list the folder " + shown_below(root_, path) + ": " +
                    why_unreadable(error));
  }

  const std::string& root_;
  Progress& progress_;
  const FilesFound& files_found_;
  Descriptor root_folder_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Folder*> waiting_;
  std::size_t unfinished_ = 0;  // wait or are being read
  std::exception_ptr failure_;
};

// Makes a catalog of what was found, and lets go of it on the way.
class Assembly {
 public:
  Catalog of(Folder& top) {
    collect(top);
    std::ranges::sort(with_files_, {}, &Folder::path);
    for (Folder* folder : with_files_) folder->group = catalog_.add_group(folder->path);
    catalog_.reserve(samples_, bytes_of_names_);
    add_samples_of(top);
    return std::move(catalog_);
  }

 private:
  void collect(Folder& folder) {
    if (folder.is_loop) return;
    catalog_.add_stamp(std::move(folder.stamp));
    if (folder.file_count > 0) with_files_.push_back(&folder);
    samples_ += folder.file_count;
    bytes_of_names_ += folder.files.size() - folder.file_count;
    for (const auto& below : folder.folders) collect(*below);
  }

  // Byte order of the whole path: a folder has its place among the files as its name with a slash.
  void add_samples_of(Folder& folder) {
    const char* next = folder.files.c_str();
    const char* const end = next + folder.files.size();
    const auto add_next = [&] {
      const std::string_view name(next);
      catalog_.add({.group = folder.group, .offset = 0, .size = -1}, name);
      next += name.size() + 1;
    };
    for (const auto& below : folder.folders) {
      const std::string place = std::string(below->own_name()) + "/";
      while (next != end && next < place) add_next();
      add_samples_of(*below);
    }
    while (next != end) add_next();
    folder.files = {};
  }

  Catalog catalog_;
  std::vector<Folder*> with_files_;
  std::uint64_t samples_ = 0, bytes_of_names_ = 0;
};

}  // namespace

Catalog list_folder(const std::string& root, unsigned threads, Progress& progress,
                    const FilesFound& files_found) {
  const std::unique_ptr<Folder> top = Walk(root, progress, files_found).run(threads);
  Catalog catalog = Assembly().of(*top);
  if (catalog.count() == 0) {
    throw FeedError("no samples in " + shown(root) +
                    ": it holds no files, hidden ones apart; give the folder that does");
  }
  return catalog;
}

}  // namespace flowos::feed
