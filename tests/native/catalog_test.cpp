// Catalogs: names and labels of each kind, what a fingerprint distinguishes, and serialization.

#include "catalog/catalog.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/errors.h"
#include "base/source_file.h"
#include "check.h"
#include "source_tools.h"

namespace {

using flowos::feed::Catalog;
using flowos::feed::FeedError;
using flowos::feed::list_arrays;
using source_tools::Folder;
using source_tools::names_of;
using source_tools::says;
using source_tools::told;
using Kind = Catalog::Kind;
using Names = std::vector<std::string>;

struct Row {
  std::uint32_t group;
  std::uint64_t offset;
  std::int64_t size;
  std::string name;
  std::optional<std::int64_t> label = {};
};

Catalog made(Kind kind, const Names& groups, const std::vector<Row>& rows) {
  Catalog catalog(kind);
  for (const std::string& group : groups) catalog.add_group(group);
  for (const Row& row : rows) {
    catalog.add({.group = row.group, .offset = row.offset, .size = row.size}, row.name, row.label);
  }
  return catalog;
}

std::vector<Catalog> of_all_kinds() {
  std::vector<Catalog> all;
  all.push_back(made(Kind::folder, {"", "a", "a/b"},
                     {{0, 0, -1, "x"}, {2, 0, -1, "\xFF\x01\n"}, {1, 0, -1, "z"}}));
  all.push_back(made(Kind::tars, {"1.tar", "0.tar"},
                     {{0, 512, 10, "k", 3}, {0, 2048, 0, "l", -1}, {1, 512, 7, "d/k", 0}}));
  all.push_back(made(Kind::arrays, {"a.npy", "empty.npy", "b.npy"},
                     {{0, 128, 64, ""}, {0, 192, 64, ""}, {2, 128, 64, ""}}));
  all.push_back(made(Kind::named, {"p", "q"}, {{1, 0, 5, "q/1"}, {0, 0, -1, "p/2"}}));
  all.emplace_back();
  all[0].add_stamp({.path = "", .mtime_ns = -5, .size = -1, .settled = true});
  all[1].add_stamp({.path = "1.tar", .mtime_ns = 1LL << 60, .size = 4096, .settled = false});
  return all;
}

bool are_same(const Catalog& one, const Catalog& other) {
  bool same = one.kind() == other.kind() && one.groups() == other.groups() &&
              names_of(one) == names_of(other) && one.fingerprint() == other.fingerprint() &&
              one.cache_key() == other.cache_key() && one.stamps().size() == other.stamps().size();
  for (std::uint64_t i = 0; same && i < one.count(); ++i) {
    same = one.label(i) == other.label(i) && one.file(i) == other.file(i) &&
           one.extent(i).offset == other.extent(i).offset &&
           one.extent(i).size == other.extent(i).size &&
           one.extent(i).group == other.extent(i).group;
  }
  for (std::size_t i = 0; same && i < one.stamps().size(); ++i) {
    const auto& [path, mtime_ns, size, settled] = one.stamps()[i];
    const Catalog::Stamp& its = other.stamps()[i];
    same =
        path == its.path && mtime_ns == its.mtime_ns && size == its.size && settled == its.settled;
  }
  return same;
}

void names_and_files_are_as_the_kind_has_them() {
  const std::vector<Catalog> all = of_all_kinds();
  CHECK((names_of(all[0]) == Names{"x", "a/b/\xFF\x01\n", "a/z"}));
  CHECK((names_of(all[1]) == Names{"1.tar:k", "1.tar:l", "0.tar:d/k"}));
  CHECK((names_of(all[2]) == Names{"a.npy[0]", "a.npy[1]", "b.npy[0]"}));
  CHECK((names_of(all[3]) == Names{"q/1", "p/2"}));
  CHECK(all[0].file(2) == "a/z" && all[1].file(2) == "0.tar" && all[2].file(1) == "a.npy");
}

void labels_are_those_that_were_given() {
  const std::vector<Catalog> all = of_all_kinds();
  CHECK(!all[0].has_labels() && all[0].label(1) == Catalog::no_label);
  CHECK(all[1].label(0) == 3 && all[1].label(1) == -1 && all[1].label(2) == 0);
  Catalog mixed = made(Kind::folder, {"a"}, {{0, 0, -1, "x"}, {0, 0, -1, "y", 1}, {0, 0, -1, "z"}});
  CHECK(mixed.label(0) == Catalog::no_label && mixed.label(1) == 1);
  CHECK(mixed.label(2) == Catalog::no_label && mixed.is_sound());
  mixed.set_classes({"one"});
  CHECK(!mixed.is_sound() && !Catalog::parse(mixed.serialized()));
  mixed.set_classes({"one", "two"});
  const std::optional<Catalog> back = Catalog::parse(mixed.serialized());
  CHECK(mixed.is_sound() && back && back->classes() == mixed.classes());
}

void some_of_a_catalog_are_as_if_listed_without_the_others() {
  const Catalog all =
      made(Kind::folder, {"", "a"},
           {{0, 0, -1, "x.JPG"}, {1, 0, -1, "jpg"}, {1, 0, -1, ".jpg", 7}, {1, 0, 5, "y.tar.gz"}});
  CHECK((all.ends_in({"jpg", "tar.gz"}) == std::vector<std::uint8_t>{1, 0, 1, 1}));
  CHECK((all.ends_in({}) == std::vector<std::uint8_t>(4)));
  const Catalog some = all.only({0, 3});
  CHECK(
      are_same(some, made(Kind::folder, {"", "a"}, {{0, 0, -1, "x.JPG"}, {1, 0, 5, "y.tar.gz"}})));
  CHECK(all.only({2}).label(0) == 7 && all.only({}).count() == 0);
}

void bytes_and_back_is_the_same() {
  for (const Catalog& catalog : of_all_kinds()) {
    const auto back = Catalog::parse(catalog.serialized());
    CHECK(back && are_same(*back, catalog));
  }
}

void bytes_that_are_cut_off_changed_or_more_give_nothing() {
  for (const Catalog& catalog : of_all_kinds()) {
    const std::string bytes = catalog.serialized();
    for (std::size_t length = 0; length < bytes.size(); ++length) {
      CHECK(!Catalog::parse(bytes.substr(0, length)));
    }
    CHECK(!Catalog::parse(bytes + '\0'));
    for (std::size_t i = 0; i < bytes.size() * 8; ++i) {
      std::string changed = bytes;
      changed[i / 8] = static_cast<char>(changed[i / 8] ^ (1 << i % 8));
      CHECK(!Catalog::parse(changed));
    }
  }
}

void what_is_unsound_gives_nothing_though_its_sum_is_right() {
  const auto survives = [](const Catalog& catalog) {
    return Catalog::parse(catalog.serialized()).has_value();
  };
  CHECK(!survives(made(Kind::folder, {"a"}, {{1, 0, -1, "x"}})));
  CHECK(!survives(made(Kind::folder, {"a"}, {{0, 0, -2, "x"}})));
  CHECK(!survives(made(Kind::tars, {"a"}, {{0, 0, -1, "x"}})));
  CHECK(!survives(made(Kind::tars, {"a"}, {{0, INT64_MAX - 4, 5, "x"}})));
  CHECK(survives(made(Kind::tars, {"a"}, {{0, INT64_MAX - 5, 5, "x"}})));
  CHECK(!survives(made(Kind::arrays, {"a", "b"}, {{1, 0, 5, ""}, {0, 0, 5, ""}})));
  CHECK(!survives(made(Kind::folder, {"a"}, {{0, 0, -1, std::string("x\0y", 3)}})));
  CHECK(!survives(made(Kind::folder, {std::string("a\0", 2)}, {{0, 0, -1, "x"}})));
}

void a_fingerprint_tells_names_places_and_groups_apart_but_not_sizes() {
  const Names groups = {"a", "b"};
  const std::uint64_t print =
      made(Kind::folder, groups, {{0, 0, -1, "ab"}, {0, 0, -1, "c"}}).fingerprint();
  const auto differs = [&](const Catalog& other) { return other.fingerprint() != print; };
  CHECK(!differs(made(Kind::folder, groups, {{0, 0, 7, "ab", 5}, {0, 0, -1, "c"}})));
  CHECK(differs(made(Kind::folder, groups, {{0, 0, -1, "a"}, {0, 0, -1, "bc"}})));
  CHECK(differs(made(Kind::folder, groups, {{0, 0, -1, "c"}, {0, 0, -1, "ab"}})));
  CHECK(differs(made(Kind::folder, groups, {{0, 0, -1, "ab"}, {1, 0, -1, "c"}})));
  CHECK(differs(made(Kind::folder, groups, {{0, 0, -1, "ab"}, {0, 1, -1, "c"}})));
  CHECK(differs(made(Kind::named, groups, {{0, 0, -1, "ab"}, {0, 0, -1, "c"}})));
  CHECK(differs(made(Kind::folder, {"a", "c"}, {{0, 0, -1, "ab"}, {0, 0, -1, "c"}})));
  CHECK(differs(made(Kind::folder, {"ab", ""}, {{0, 0, -1, "ab"}, {0, 0, -1, "c"}})));
  CHECK(differs(made(Kind::folder, groups, {{0, 0, -1, "ab"}})));
}

void records_are_the_whole_pieces_behind_the_header() {
  const Folder folder;
  folder.write("a.npy", std::string(128 + 3 * 10 + 9, 'x'));
  folder.write("less.npy", std::string(100, 'x'));
  folder.write("b.npy", std::string(128 + 10, 'x'));
  folder.age(100);
  const Catalog catalog = list_arrays(folder.path(), {"a.npy", "less.npy", "b.npy"}, 128, 10);
  CHECK((names_of(catalog) == Names{"a.npy[0]", "a.npy[1]", "a.npy[2]", "b.npy[0]"}));
  CHECK(catalog.extent(2).offset == 148 && catalog.extent(3).offset == 128);
  CHECK(catalog.extent(3).size == 10 && catalog.still_holds(folder.path(), 2));
  folder.write("a.npy", std::string(128 + 3 * 10 + 9, 'y'));
  CHECK(!catalog.still_holds(folder.path(), 2));

  const auto refusal = [&](const Names& arrays, std::uint64_t header, std::uint64_t record) {
    return told<FeedError>([&] { list_arrays(folder.path(), arrays, header, record); });
  };
  CHECK(says(refusal({"a.npy"}, 0, 0), "records of 0 bytes"));
  CHECK(says(refusal({"a.npy"}, 128, 1000), "none holds 1000 bytes after a header of 128"));
  CHECK(says(refusal({"none.npy"}, 0, 1), "none.npy: No such file or directory"));
  std::filesystem::resize_file(folder.at("a.npy"), 2'000'000'000);
  CHECK(says(refusal({"a.npy"}, 0, 1), "more than 1,000,000,000 records"));
}

void a_shown_name_is_one_line_of_utf8() {
  using flowos::feed::shown;
  CHECK(shown("a/b c.jpg") == "a/b c.jpg");
  CHECK(shown("\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80") == "\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80");
  CHECK(shown("a\nb\x7F") == "a\\x0ab\\x7f");
  CHECK(shown("\xFF") == "\\xff");
  CHECK(shown("\xC3") == "\\xc3");                    // cut off
  CHECK(shown("\xC0\xAF") == "\\xc0\\xaf");           // longer than need be
  CHECK(shown("\xED\xA0\x80") == "\\xed\\xa0\\x80");  // half a UTF-16 pair
  CHECK(shown("\xF4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80");
  CHECK(shown("\xBF\x41") == "\\xbf\x41");
}

}  // namespace

int main() {
  names_and_files_are_as_the_kind_has_them();
  labels_are_those_that_were_given();
  some_of_a_catalog_are_as_if_listed_without_the_others();
  bytes_and_back_is_the_same();
  bytes_that_are_cut_off_changed_or_more_give_nothing();
  what_is_unsound_gives_nothing_though_its_sum_is_right();
  a_fingerprint_tells_names_places_and_groups_apart_but_not_sizes();
  records_are_the_whole_pieces_behind_the_header();
  a_shown_name_is_one_line_of_utf8();
}
