// Tar shards: all formats, WebDataset's samples, and errors of invalid shards.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/errors.h"
#include "base/progress.h"
#include "catalog/catalog.h"
#include "check.h"
#include "source/files.h"
#include "source_tools.h"

namespace {

using flowos::feed::Catalog;
using flowos::feed::FeedError;
using flowos::feed::Files;
using flowos::feed::Progress;
using namespace std::string_literals;
using source_tools::bytes_of;
using source_tools::Folder;
using source_tools::names_of;
using source_tools::octal;
using source_tools::padded;
using source_tools::pax_record;
using source_tools::says;
using source_tools::tar_end;
using source_tools::tar_header;
using source_tools::tar_member;
using source_tools::told;
using Names = std::vector<std::string>;

Catalog listed(const Folder& folder, const Names& shards, const std::string& member = "") {
  Progress progress;
  Catalog catalog = flowos::feed::list_tars(folder.path(), shards, member, 3, progress);
  CHECK(progress.found == catalog.count());
  CHECK(catalog.is_sound());
  return catalog;
}

Catalog listed(const Folder& folder, const std::string& archive, const std::string& member = "") {
  folder.write("s.tar", archive);
  return listed(folder, Names{"s.tar"}, member);
}

std::string refusal(const std::string& archive, const std::string& member = "") {
  const Folder folder;
  return told<FeedError>([&] { listed(folder, archive, member); });
}

void members_of_one_key_are_one_sample_with_its_class() {
  const Folder folder;
  const Catalog catalog =
      listed(folder, tar_member("a/1.jpg", "first") + tar_member("a/1.cls", " 7\n") +
                         tar_member("a/1.json", "{}") + tar_member("a/2.cls", "-3") +
                         tar_member("a/2.seg.PNG", "second") + tar_member("b.x/3.jpg", "third") +
                         tar_member("a/1.jpg", "again") + tar_member("4.cls", "4") + tar_end());
  CHECK((names_of(catalog) == Names{"s.tar:a/1", "s.tar:a/2", "s.tar:b.x/3", "s.tar:a/1"}));
  CHECK(catalog.label(0) == 7 && catalog.label(1) == -3);
  CHECK(catalog.label(2) == Catalog::no_label && catalog.classes().empty());
  const Files files(folder.path(), source_tools::shared(catalog));
  CHECK(bytes_of(files, 0) == "first" && bytes_of(files, 1) == "second");
  CHECK(bytes_of(files, 2) == "third" && bytes_of(files, 3) == "again");
}

void words_become_classes_in_byte_order_over_all_shards() {
  const Folder folder;
  const auto of = [](const std::string& key, const std::string& word) {
    return tar_member(key + ".jpg", "x") + tar_member(key + ".cls", word);
  };
  folder.write("a.tar", of("1", "dog\n") + of("2", "-8") + of("3", "dog") + tar_end());
  folder.write("b.tar", of("1", "cat") + of("2", " 7 8 ") + tar_end());
  const Catalog catalog = listed(folder, Names{"a.tar", "b.tar"});
  CHECK((catalog.classes() == Names{"-8", "7 8", "cat", "dog"}));
  CHECK(catalog.label(0) == 3 && catalog.label(1) == 0 && catalog.label(2) == 3);
  CHECK(catalog.label(3) == 2 && catalog.label(4) == 1);
}

void a_class_that_cannot_be_read_is_none_and_that_is_known() {
  const Folder folder;
  for (const std::string& text : {""s, " \n"s, "a\0b"s, std::string(1025, 'x')}) {
    const Catalog catalog =
        listed(folder, tar_member("1.jpg", "x") + tar_member("1.cls", text) + tar_end());
    CHECK(catalog.has_labels() && catalog.label(0) == Catalog::no_label);
  }
  CHECK(!listed(folder, tar_member("1.jpg", "x") + tar_end()).has_labels());
}

void a_wished_member_is_the_sample_and_keys_without_it_are_none() {
  const Folder folder;
  const std::string archive = tar_member("1.jpg", "jpg 1") + tar_member("1.txt", "text 1") +
                              tar_member("2.jpg", "jpg 2") + tar_end();
  const Catalog texts = listed(folder, archive, "txt");
  CHECK(names_of(texts) == Names{"s.tar:1"});
  const Files files(folder.path(), source_tools::shared(texts));
  CHECK(bytes_of(files, 0) == "text 1");
  CHECK(listed(folder, archive, ".jpg").count() == 2);
  CHECK(says(refusal(archive, "png"), "no member is called KEY.png; there are members .jpg, .txt"));
  CHECK(says(refusal(tar_member("README", "") + tar_end()), "no member is called KEY.ENDING"));
}

void links_folders_hidden_files_and_meta_are_no_samples() {
  const Folder folder;
  const std::string link = tar_header("1.png", octal(5, 11), '2');  // a size, but no content
  const Catalog catalog =
      listed(folder, tar_member("d.x/", "", '5') + link + tar_member("._1.jpg", "mac") +
                         tar_member("__meta__/1.jpg", "meta") + tar_member("README", "none") +
                         tar_member("old.d/", "", '\0') + tar_member("1.jpg", "it") + tar_end());
  CHECK(names_of(catalog) == Names{"s.tar:1"});
}

void paths_and_sizes_of_all_formats_are_read() {
  const Folder folder;
  const std::string long_path = std::string(150, 'd') + "/" + std::string(120, 'n') + ".jpg";
  std::string prefixed = tar_header("n.jpg", octal(2, 11), '0');
  prefixed.replace(345, 3, "a/b");
  const std::string binary = "\x80"s + std::string(10, '\0') + "\x03";
  const std::string archive =
      tar_member("././@LongLink", long_path + '\0', 'L') + tar_member("cut", "gnu") +
      tar_member("./PaxHeaders/x",
                 pax_record("mtime", "1.5") + pax_record("path", "p/\xC3\xA4.jpg") +
                     pax_record("size", "3"),
                 'x') +
      tar_header("cut", octal(0, 11), '0') + padded("pax") +
      tar_member("g", pax_record("comment", "commit"), 'g') + source_tools::with_sum(prefixed) +
      padded("ab") + tar_header("binary.jpg", binary, '0', "ustar  \0"s) + padded("gnu") +
      tar_header("seven.jpg", "       7 \0"s, '\0', "") + padded("old tar") + tar_end();
  const Catalog catalog = listed(folder, archive);
  CHECK((names_of(catalog) == Names{"s.tar:" + long_path.substr(0, long_path.size() - 4),
                                    "s.tar:p/\xC3\xA4", "s.tar:a/b/n", "s.tar:binary",
                                    "s.tar:seven"}));
  const Files files(folder.path(), source_tools::shared(catalog));
  Names contents;
  for (std::uint64_t i = 0; i < catalog.count(); ++i) contents.push_back(bytes_of(files, i));
  CHECK((contents == Names{"gnu", "pax", "ab", "gnu", "old tar"}));
}

// As some old programs summed: a byte from 128 on counts 256 less.
void sums_of_signed_characters_are_right_and_others_are_not() {
  const std::string header = tar_header("\xC3\xA4.jpg", octal(1, 11), '0');
  const std::uint64_t sum = std::stoull(header.substr(148, 6), nullptr, 8);
  const auto stating = [&](std::uint64_t stated) {
    return std::string(header).replace(148, 6, octal(stated, 6)) + padded("x") + tar_end();
  };
  const Folder folder;
  CHECK(listed(folder, stating(sum)).count() == 1);
  CHECK(listed(folder, stating(sum - 512)).count() == 1);
  for (const std::uint64_t wrong : {sum - 1, sum - 511, sum - 513, sum - 256}) {
    CHECK(says(refusal(stating(wrong)), "the sum of its first header is wrong"));
  }
}

void a_size_is_one_that_a_file_can_have() {
  const auto of = [](char first, char second) {
    return tar_header(
        "1.jpg", "\x80"s + std::string(2, '\0') + first + second + std::string(7, '\xff'), '0');
  };
  CHECK(says(refusal(of('\0', '\x7f')), "1.jpg has 9223372036854775807 bytes"));
  CHECK(says(refusal(of('\0', '\x80')), "the size of 1.jpg is no number"));
  CHECK(says(refusal(of('\1', '\0')), "the size of 1.jpg is no number"));
}

void an_archive_needs_no_mark_of_its_end() {
  const Folder folder;
  const std::string member = tar_member("1.jpg", "x");
  CHECK(listed(folder, member).count() == 1);
  CHECK(listed(folder, member.substr(0, 513)).count() == 1);  // nor the last padding
  CHECK(listed(folder, member + std::string(10240, '\0')).count() == 1);
  CHECK(says(refusal(member.substr(0, 600)), "is cut off: it ends at byte 600"));
}

void what_is_wrong_with_a_shard_is_told() {
  const std::string one = tar_member("1.jpg", "one");
  const std::string two = tar_member("2.jpg", std::string(1000, 'x'));
  CHECK(says(refusal(""), "s.tar is empty"));
  CHECK(says(refusal("short"), "is no tar archive: it is too short"));
  CHECK(says(refusal(std::string(1000, 'x')), "is no tar archive: the sum of its first header"));
  CHECK(says(refusal("\x1f\x8b"s + std::string(1000, 'x')), "is compressed"));
  CHECK(says(refusal(one + two.substr(0, 100)), "is cut off in the header after 1.jpg"));
  CHECK(says(refusal(one + two.substr(0, 900)),
             "its member 2.jpg has 1000 bytes from byte 1536 on, but the file ends at byte 1924"));
  CHECK(says(refusal(one + std::string(512, 'x') + two), "is damaged at byte 1024, after 1.jpg"));
  for (const std::size_t blocks : {1, 8, 20, 21, 2048}) {
    CHECK(says(refusal(one + std::string(blocks * 512, '\0') + two.substr(0, 900)),
               "has another archive behind its end, from byte " +
                   std::to_string(1024 + blocks * 512) + " on"));
  }
  CHECK(says(refusal(one + std::string(4096, '\0') + std::string(512, 'x')),
             "there is more behind them"));
  CHECK(says(refusal(tar_header("1.jpg", "00000000009", '0')), "the size of 1.jpg is no number"));
  CHECK(says(refusal(tar_header("1.jpg", std::string(12, '\xff'), '0')), "is no number"));
  CHECK(says(refusal(tar_header("sparse", octal(0, 11), 'S')), "holds the sparse file sparse;"));
  CHECK(says(refusal(tar_member("x", pax_record("GNU.sparse.major", "1"), 'x') + one),
             "holds a sparse file"));
  CHECK(says(refusal(tar_member("x", "99 path=a\n", 'x') + one), "pax records cannot be read"));
  CHECK(says(refusal(tar_member("x", pax_record("size", "1x"), 'x') + one), "a size is no number"));
  CHECK(says(refusal(one + one + tar_end()), "holds 1.jpg twice for one sample"));
}

void a_shard_that_cannot_be_read_is_told() {
  const Folder folder;
  folder.write("folder/s.tar", tar_member("1.jpg", "x"));
  const auto of = [&](const std::string& shard) {
    return told<FeedError>([&] { listed(folder, Names{shard}); });
  };
  CHECK(says(of("none.tar"), "none.tar: No such file or directory; is the name right?"));
  CHECK(says(of("folder"), "folder is no file"));
}

void a_shard_cut_off_anywhere_is_told_or_whole() {
  const std::string archive = tar_member("1.jpg", "one") +
                              tar_member("x", pax_record("path", "2.jpg"), 'x') +
                              tar_member("cut", std::string(600, 'x')) + tar_end();
  const Folder folder;
  std::size_t whole = 0;
  for (std::size_t length = 0; length < archive.size(); length += 7) {
    const std::string line = told<FeedError>([&] { listed(folder, archive.substr(0, length)); });
    if (line == "nothing was told") {
      ++whole;
    } else {
      CHECK(line.find("is cut off") != std::string::npos || length < 512);
    }
  }
  CHECK(whole > 0);
}

// The window grows over small members, and shrinks where large ones follow.
void many_members_of_all_sizes_are_found_where_they_are() {
  const Folder folder;
  std::string archive;
  std::uint64_t state = 1;
  std::vector<std::size_t> sizes;
  for (int i = 0; i < 3000; ++i) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    sizes.push_back((state >> 33U) % (i % 500 < 450 ? 900 : 60000));
    archive +=
        tar_member(std::to_string(i) + ".bin", std::string(sizes.back(), static_cast<char>(i)));
  }
  const Catalog catalog = listed(folder, archive + tar_end());
  const Files files(folder.path(), source_tools::shared(catalog));
  CHECK(catalog.count() == sizes.size());
  for (std::uint64_t i = 0; i < catalog.count(); ++i) {
    CHECK(catalog.name(i) == "s.tar:" + std::to_string(i));
    CHECK(bytes_of(files, i) == std::string(sizes[i], static_cast<char>(i)));
  }
}

void shards_keep_the_order_in_which_they_are_named() {
  const Folder folder;
  Names shards, expected;
  for (int i = 40; i-- > 0;) {
    shards.push_back("s" + std::to_string(i) + ".tar");
    expected.push_back(shards.back() + ":k");
    folder.write(shards.back(), tar_member("k.jpg", "x"));
  }
  CHECK(names_of(listed(folder, shards)) == expected);
  CHECK(listed(folder, shards).groups() == shards);
}

void a_kept_listing_of_shards_holds_until_one_is_written() {
  const Folder folder;
  const std::string archive = tar_member("1.jpg", "x") + tar_end();
  folder.write("s.tar", archive);
  folder.age(100);
  const Catalog catalog = listed(folder, Names{"s.tar"});
  CHECK(catalog.still_holds(folder.path(), 2));
  folder.write("new.tar", archive);  // the names of shards are the caller's
  CHECK(catalog.still_holds(folder.path(), 2));
  folder.write("s.tar", archive);
  CHECK(!catalog.still_holds(folder.path(), 2));
  const Catalog again = listed(folder, Names{"s.tar"});
  CHECK(again.fingerprint() == catalog.fingerprint());
  CHECK(again.cache_key() != catalog.cache_key());
}

}  // namespace

int main() {
  members_of_one_key_are_one_sample_with_its_class();
  words_become_classes_in_byte_order_over_all_shards();
  a_class_that_cannot_be_read_is_none_and_that_is_known();
  a_wished_member_is_the_sample_and_keys_without_it_are_none();
  links_folders_hidden_files_and_meta_are_no_samples();
  paths_and_sizes_of_all_formats_are_read();
  sums_of_signed_characters_are_right_and_others_are_not();
  a_size_is_one_that_a_file_can_have();
  an_archive_needs_no_mark_of_its_end();
  what_is_wrong_with_a_shard_is_told();
  a_shard_that_cannot_be_read_is_told();
  a_shard_cut_off_anywhere_is_told_or_whole();
  many_members_of_all_sizes_are_found_where_they_are();
  shards_keep_the_order_in_which_they_are_named();
  a_kept_listing_of_shards_holds_until_one_is_written();
}
