#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/errors.h"
#include "base/parallel.h"
#include "base/progress.h"
#include "base/source_file.h"
#include "base/unique_fd.h"
#include "catalog/catalog.h"
#include "catalog/stamp.h"
#include "catalog/tar.h"

namespace flowos::feed {
namespace {

constexpr std::size_t max_class_bytes = 1024;
constexpr std::size_t max_endings = 8;

// A path as WebDataset divides it: at the first dot of its base name.
struct Parts {
  std::string key;
  std::string ending;  // lower case
};

std::optional<Parts> parts_of(std::string_view path) {
  const std::string_view top = path.substr(0, path.find('/'));
  if (top.size() >= 4 && top.starts_with("__") && top.ends_with("__")) return std::nullopt;
  const std::size_t base = path.rfind('/') + 1;  // npos + 1 is 0
  const std::size_t dot = path.find('.', base);
  if (dot == std::string_view::npos || dot == base) return std::nullopt;
  std::string ending(path.substr(dot + 1));
  std::ranges::transform(ending, ending.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return Parts{.key = std::string(path.substr(0, dot)), .ending = std::move(ending)};
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blank = " \t\r\n";
  text.remove_prefix(std::min(text.find_first_not_of(blank), text.size()));
  return text.substr(0, text.find_last_not_of(blank) + 1);
}

bool is_text(std::string_view text) {
  return !text.empty() && std::ranges::none_of(text, [](unsigned char c) { return c < ' '; });
}

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

struct Piece {
  std::string name;
  std::uint64_t offset = 0;
  std::int64_t size = -1;                  // no member was chosen yet
  std::int64_t label = Catalog::no_label;  // which of the shard's words
};

// What one shard holds.
struct Shard {
  std::vector<Piece> pieces;
  std::set<std::string> endings;                        // of some members, for a complaint
  std::unordered_map<std::string, std::int64_t> words;  // what .cls members say, as it comes
  bool has_classes = false;                             // a .cls member, whatever it says
  Catalog::Stamp stamp{};
};

// Puts the members of one shard together to samples.
class Grouping {
 public:
  Grouping(const std::string& name, const std::string& wanted, Shard& shard)
      : name_(name), wanted_(wanted), shard_(shard) {}

  void run(TarReader& reader, Progress& progress) {
    while (const auto member = reader.next()) {
      if (progress.stopped) throw FeedError("the listing of " + name_ + " was stopped");
      if (take(*member, reader)) ++progress.found;
    }
    if (finish_sample()) ++progress.found;
  }

 private:
  // Whether a sample became complete by it.
  bool take(const TarMember& member, TarReader& reader) {
    auto parts = parts_of(member.path);
    if (!parts) return false;
    bool completes = false;
    if (parts->key != current_.name) {
      completes = finish_sample();
      current_.name = std::move(parts->key);
    }
    const std::string& ending = parts->ending;
    if (shard_.endings.size() < max_endings) shard_.endings.insert(ending);
    if (ending == "cls") current_.label = word_in(member, reader);
    if (is_sample(ending)) choose(member, ending);
    return completes;
  }

  std::int64_t word_in(const TarMember& member, TarReader& reader) {
    shard_.has_classes = true;
    if (member.size > max_class_bytes) return Catalog::no_label;
    const std::string content = reader.content(member, max_class_bytes);
    const std::string_view text = trimmed(content);
    if (!is_text(text)) return Catalog::no_label;
    const auto next = static_cast<std::int64_t>(shard_.words.size());
    return shard_.words.try_emplace(std::string(text), next).first->second;
  }

  bool is_sample(std::string_view ending) const {
    if (!wanted_.empty()) return ending == wanted_;
    return ending != "cls" && ending != "json" && ending != "txt";
  }

  void choose(const TarMember& member, const std::string& ending) {
    if (current_.size < 0) {
      current_.offset = member.offset;
      current_.size = static_cast<std::int64_t>(member.size);
      ending_ = ending;
    } else if (ending == ending_) {
      throw FeedError(name_ + " holds " + shown(member.path) +
                      " twice for one sample; write it again with one of them");
    }
  }

  bool finish_sample() {
    const bool is_one = current_.size >= 0;
    if (is_one) shard_.pieces.push_back(std::move(current_));
    current_ = {};
    return is_one;
  }

  const std::string& name_;
  const std::string& wanted_;
  Shard& shard_;
  Piece current_;
  std::string ending_;  // of the member that is the current sample
};

std::string joined(const std::set<std::string>& endings) {
  std::string text;
  for (const std::string& ending : endings) text += (text.empty() ? "." : ", .") + shown(ending);
  return text;
}

[[noreturn]] void refuse_empty(const std::string& root, const std::vector<Shard>& shards,
                               const std::string& wanted) {
  std::set<std::string> endings;
  for (const Shard& shard : shards) endings.insert(shard.endings.begin(), shard.endings.end());
  std::string why = "no member is called KEY.ENDING, as in WebDataset's layout";
  if (!endings.empty()) {
    why = (wanted.empty() ? "" : "no member is called KEY." + shown(wanted) + "; ") +
          "there are members " + joined(endings);
  }
  throw FeedError("no samples in " + std::to_string(shards.size()) + " tar shards below " +
                  shown(root) + ": " + why);
}

// The labels that words stand for: what they say where all are whole numbers, else their places in
// byte order.
class Labels {
 public:
  explicit Labels(const std::vector<Shard>& shards) {
    for (const Shard& shard : shards) {
      for (const auto& [word, place] : shard.words) labels_.try_emplace(word);
    }
    are_numbers_ = std::ranges::all_of(
        labels_, [](const auto& each) { return whole_number(each.first).has_value(); });
    std::int64_t next = 0;
    for (auto& [word, label] : labels_) label = are_numbers_ ? *whole_number(word) : next++;
  }

  // Of a shard's words, by their places in it.
  std::vector<std::int64_t> of(const Shard& shard) const {
    std::vector<std::int64_t> labels(shard.words.size());
    for (const auto& [word, place] : shard.words) {
      labels[static_cast<std::size_t>(place)] = labels_.at(word);
    }
    return labels;
  }

  std::vector<std::string> classes() const {
    std::vector<std::string> names;
    if (are_numbers_) return names;
    for (const auto& [word, label] : labels_) names.push_back(word);
    return names;
  }

 private:
  std::map<std::string, std::int64_t> labels_;
  bool are_numbers_ = false;
};

Catalog catalog_of(const std::vector<std::string>& names, std::vector<Shard>& shards) {
  std::uint64_t samples = 0, bytes_of_names = 0;
  for (const Shard& shard : shards) {
    samples += shard.pieces.size();
    for (const Piece& piece : shard.pieces) bytes_of_names += piece.name.size();
  }
  const bool has_classes = std::ranges::any_of(shards, &Shard::has_classes);
  const Labels labels(shards);
  Catalog catalog(Catalog::Kind::tars);
  catalog.reserve(samples, bytes_of_names);
  catalog.set_classes(labels.classes());
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::uint32_t group = catalog.add_group(names[i]);
    const std::vector<std::int64_t> of_words = labels.of(shards[i]);
    for (const Piece& piece : shards[i].pieces) {
      std::optional<std::int64_t> label;
      if (has_classes) label = Catalog::no_label;
      if (piece.label >= 0) label = of_words[static_cast<std::size_t>(piece.label)];
      catalog.add({.group = group, .offset = piece.offset, .size = piece.size}, piece.name, label);
    }
    shards[i].pieces = {};
    catalog.add_stamp(std::move(shards[i].stamp));
  }
  return catalog;
}

}  // namespace

Catalog list_tars(const std::string& root, const std::vector<std::string>& shards,
                  const std::string& member, unsigned threads, Progress& progress) {
  const Descriptor folder = open_root(root);
  const std::string wanted = member.starts_with('.') ? member.substr(1) : member;
  std::vector<Shard> listed(shards.size());
  for_each_in_threads(shards.size(), threads, [&](std::size_t i) {
    const std::string name = shown_below(root, shards[i]);
    const Descriptor file = open_piece(root, folder.get(), shards[i], listed[i].stamp);
    TarReader reader(file.get(), static_cast<std::uint64_t>(listed[i].stamp.size), name);
    Grouping(name, wanted, listed[i]).run(reader, progress);
  });
  Catalog catalog = catalog_of(shards, listed);
  if (catalog.count() == 0) refuse_empty(root, listed, wanted);
  return catalog;
}

}  // namespace flowos::feed
