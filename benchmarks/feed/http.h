#pragma once

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace flowos::bench {

struct HttpRequest {
  std::string method, path;
  std::map<std::string, std::string> query, fields;
};

inline std::string unescaped(std::string_view word) {
  std::string plain;
  for (std::size_t i = 0; i < word.size(); ++i) {
    unsigned value = 0;
    if (word[i] == '%' && i + 2 < word.size() &&
        std::from_chars(&word[i + 1], &word[i + 1] + 2, value, 16).ptr == &word[i + 1] + 2) {
      plain += static_cast<char>(value);
      i += 2;
    } else {
      plain += word[i] == '+' ? ' ' : word[i];
    }
  }
  return plain;
}

inline std::map<std::string, std::string> read_query(std::string_view words) {
  std::map<std::string, std::string> found;
  while (!words.empty()) {
    const std::string_view pair = words.substr(0, words.find('&'));
    const std::size_t equals = std::min(pair.find('='), pair.size());
    const std::string_view value = pair.substr(std::min(equals + 1, pair.size()));
    found[unescaped(pair.substr(0, equals))] = unescaped(value);
    words.remove_prefix(std::min(pair.size() + 1, words.size()));
  }
  return found;
}

// The head of a request, with lines ending in CR LF; nullopt if it is invalid.
inline std::optional<HttpRequest> read_head(std::string_view head) {
  const std::size_t first = head.find("\r\n");
  const std::string_view line = head.substr(0, first);
  const std::size_t space = line.find(' '), last = line.rfind(' ');
  if (space == std::string_view::npos || last <= space) return std::nullopt;
  HttpRequest request;
  request.method = line.substr(0, space);
  const std::string_view target = line.substr(space + 1, last - space - 1);
  const std::size_t mark = std::min(target.find('?'), target.size());
  request.path = unescaped(target.substr(0, mark));
  request.query = read_query(target.substr(std::min(mark + 1, target.size())));
  head.remove_prefix(std::min(first, head.size()));
  while (head.size() > 2) {
    head.remove_prefix(2);
    const std::string_view field = head.substr(0, head.find("\r\n"));
    const std::size_t colon = std::min(field.find(':'), field.size());
    std::string name(field.substr(0, colon));
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char sign) { return static_cast<char>(std::tolower(sign)); });
    std::size_t value = std::min(colon + 1, field.size());
    while (value < field.size() && field[value] == ' ') ++value;
    request.fields[name] = field.substr(value);
    head.remove_prefix(field.size());
  }
  return request;
}

// First and last byte of the range in `field`; everything if it has none, nullopt if it is out of
// range.
inline std::optional<std::pair<std::int64_t, std::int64_t>> range_of(const std::string& field,
                                                                     std::int64_t size) {
  std::int64_t first = 0, last = size - 1;
  if (field.rfind("bytes=", 0) != 0) return std::pair{first, last};
  const std::string asked = field.substr(6);
  const std::size_t dash = asked.find('-');
  if (dash == std::string::npos) return std::nullopt;
  const std::string from = asked.substr(0, dash), to = asked.substr(dash + 1);
  if (from.empty()) {
    first = std::max<std::int64_t>(0, size - std::strtoll(to.c_str(), nullptr, 10));
  } else {
    first = std::strtoll(from.c_str(), nullptr, 10);
    if (!to.empty()) last = std::min<std::int64_t>(last, std::strtoll(to.c_str(), nullptr, 10));
  }
  if (first > last) return std::nullopt;
  return std::pair{first, last};
}

}  // namespace flowos::bench
