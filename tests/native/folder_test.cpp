// Listing folders: what is a sample, in which order, and errors when one cannot be listed.

#include <dirent.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "base/errors.h"
#include "base/progress.h"
#include "catalog/catalog.h"
#include "check.h"
#include "source_tools.h"

namespace {

std::atomic<bool> types_are_unknown = false;

}  // namespace

// In the place of glibc's: some file systems do not say what an entry is.
extern "C" ssize_t getdents64(int folder, void* buffer, size_t bytes) {
  const auto got = static_cast<ssize_t>(::syscall(SYS_getdents64, folder, buffer, bytes));
  for (ssize_t at = 0; types_are_unknown && at < got;) {
    auto* entry = reinterpret_cast<dirent64*>(static_cast<char*>(buffer) + at);
    entry->d_type = DT_UNKNOWN;
    at += entry->d_reclen;
  }
  return got;
}

namespace {

using flowos::feed::Catalog;
using flowos::feed::FeedError;
using flowos::feed::Progress;
using source_tools::Folder;
using source_tools::names_of;
using source_tools::says;
using source_tools::told;
using Names = std::vector<std::string>;

Catalog listed(const std::string& root, unsigned threads = 4) {
  Progress progress;
  Catalog catalog = flowos::feed::list_folder(root, threads, progress);
  CHECK(progress.found == catalog.count());
  CHECK(catalog.is_sound());
  return catalog;
}

// By the simplest way: all paths, sorted as bytes.
Names reference(const std::string& root) {
  Names names;
  const auto with_links = std::filesystem::directory_options::follow_directory_symlink;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root, with_links)) {
    const std::string name = entry.path().string().substr(root.size() + 1);
    const bool is_hidden = name[0] == '.' || name.find("/.") != std::string::npos;
    if (entry.is_regular_file() && !is_hidden) names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

void order_is_that_of_the_paths_bytes_whatever_the_tree_and_the_threads() {
  std::mt19937 random(20);
  // Characters on both sides of the slash, and beyond ASCII.
  const std::string letters = "a-.0Z_\xC3\xFF ";
  for (int round = 0; round < 20; ++round) {
    const Folder folder;
    folder.write("some", "");
    for (int i = 0; i < 60; ++i) {
      std::string path;
      for (unsigned depth = random() % 4; depth-- > 0;) {
        path += "d" + std::string(1, letters[random() % letters.size()]) + "/";
      }
      path += letters[random() % letters.size()];
      path += "f" + std::to_string(random() % 100);
      folder.write(path, "");
    }
    const Names expected = reference(folder.path());
    for (const unsigned threads : {0U, 1U, 7U}) {
      CHECK(names_of(listed(folder.path(), threads)) == expected);
    }
    types_are_unknown = true;
    CHECK(names_of(listed(folder.path())) == expected);
    types_are_unknown = false;
  }
}

void hidden_files_and_folders_and_what_is_no_file_are_left_out() {
  const Folder folder;
  folder.write("a/.hidden", "");
  folder.write("a/seen", "");
  folder.write(".git/config", "");
  CHECK(::mkfifo(folder.at("a/fifo").c_str(), 0600) == 0);
  folder.link("fifo", "a/to-fifo");
  CHECK(names_of(listed(folder.path())) == Names{"a/seen"});
  types_are_unknown = true;
  CHECK(names_of(listed(folder.path())) == Names{"a/seen"});
  types_are_unknown = false;
}

void links_are_followed_but_not_round_in_circles() {
  const Folder folder;
  const Folder elsewhere;
  elsewhere.write("x", "");
  elsewhere.write("deep/y", "");
  folder.write("a/one", "");
  folder.link("one", "a/two");
  folder.link("../a", "a/self");
  folder.link("..", "a/up");
  folder.link(elsewhere.path(), "b");
  folder.link(folder.path(), "c");
  elsewhere.link(folder.path(), "deep/back");
  folder.link("nowhere", "gone");
  const Names expected = {"a/one", "a/two", "b/deep/y", "b/x", "gone"};
  CHECK(names_of(listed(folder.path())) == expected);
}

void groups_are_the_folders_with_files() {
  const Folder folder;
  folder.write("a/1", "");
  folder.write("a-b/2", "");
  folder.write("a/deep/3", "");
  folder.write("empty/deeper/4", "");
  const Catalog classes = listed(folder.path());
  CHECK((classes.groups() == Names{"a", "a-b", "a/deep", "empty/deeper"}));
  CHECK((names_of(classes) == Names{"a-b/2", "a/1", "a/deep/3", "empty/deeper/4"}));
  CHECK(!classes.has_labels());

  folder.write("README", "");
  const Catalog with_loose = listed(folder.path());
  CHECK(with_loose.groups()[0].empty());
  CHECK(with_loose.name(0) == "README" && with_loose.extent(0).group == 0);
}

void a_folder_that_cannot_be_listed_is_told_in_one_line() {
  const Folder folder;
  folder.write("file", "");
  const auto of = [](const std::string& root) { return told<FeedError>([&] { listed(root); }); };
  CHECK(says(of(folder.at("none")), "none: No such file or directory; is it mounted here"));
  CHECK(says(of(folder.at("file")), "file is no folder; give the folder that holds the samples"));
  std::filesystem::create_directories(folder.at("empty/more"));
  CHECK(says(of(folder.at("empty")), "no samples in"));
  folder.write("in\nname/x", "");
  CHECK(says(of(folder.at("in\nname/x")), "in\\x0aname/x is no folder"));
}

// As an ordinary user: root may list everything.
void a_folder_that_may_not_be_read_is_told() {
  const Folder folder;
  folder.write("shut/x/file", "");
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0755));
  std::filesystem::permissions(folder.at("shut/x"), std::filesystem::perms::none);
  const pid_t child = ::fork();
  if (child == 0) {
    constexpr uid_t nobody = 65534;
    CHECK(::geteuid() != 0 || ::setresuid(nobody, nobody, nobody) == 0);
    const std::string line = told<FeedError>([&] { listed(folder.path()); });
    ::_exit(says(line, "shut/x: Permission denied; make it readable for you") ? 0 : 1);
  }
  int status = 1;
  CHECK(::waitpid(child, &status, 0) == child && status == 0);
  std::filesystem::permissions(folder.at("shut/x"), std::filesystem::perms::owner_all);
}

void a_listing_that_is_stopped_ends() {
  const Folder folder;
  folder.write("a/file", "");
  Progress progress;
  progress.stopped = true;
  const std::string line =
      told<FeedError>([&] { flowos::feed::list_folder(folder.path(), 2, progress); });
  CHECK(says(line, "was stopped"));
}

void a_kept_listing_holds_until_a_folder_changes() {
  const Folder folder;
  folder.write("a/1", "x");
  folder.write("b/deep/2", "x");
  std::filesystem::create_directories(folder.at("empty"));
  folder.write("elsewhere/3", "x");
  folder.link("../elsewhere", "b/link");
  CHECK(!listed(folder.path()).still_holds(folder.path(), 4));  // too fresh to tell

  const auto holds_after = [&](const auto& change) {
    folder.age(100);
    const auto kept = Catalog::parse(listed(folder.path()).serialized());
    CHECK(kept && kept->still_holds(folder.path(), 1) && kept->still_holds(folder.path(), 8));
    change();
    return kept->still_holds(folder.path(), 4);
  };
  const auto rename = [&](const char* from, const char* to) {
    std::filesystem::rename(folder.at(from), folder.at(to));
  };
  CHECK(holds_after([] {}));
  CHECK(holds_after([&] { folder.write("a/1", "other"); }));  // found when it is fetched
  CHECK(!holds_after([&] { folder.write("a/new", "x"); }));
  CHECK(!holds_after([&] { rename("b/deep/2", "b/deep/3"); }));
  CHECK(!holds_after([&] { std::filesystem::remove(folder.at("elsewhere/3")); }));
  CHECK(!holds_after([&] { folder.write("empty/first", "x"); }));
  CHECK(!holds_after([&] { std::filesystem::remove_all(folder.at("b")); }));
  const Catalog catalog = listed(folder.path());
  CHECK(!catalog.still_holds(folder.at("nowhere"), 4));
}

}  // namespace

int main() {
  order_is_that_of_the_paths_bytes_whatever_the_tree_and_the_threads();
  hidden_files_and_folders_and_what_is_no_file_are_left_out();
  links_are_followed_but_not_round_in_circles();
  groups_are_the_folders_with_files();
  a_folder_that_cannot_be_listed_is_told_in_one_line();
  a_folder_that_may_not_be_read_is_told();
  a_listing_that_is_stopped_ends();
  a_kept_listing_holds_until_a_folder_changes();
}
