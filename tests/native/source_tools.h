#pragma once

// Shared by the tests of sources: a temporary folder, tar archives written by hand, and the
// message of an exception.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/catalog.h"
#include "check.h"
#include "source/files.h"

namespace source_tools {

// Names in it are relative to it.
class Folder {
 public:
  Folder() {
    std::string pattern = std::filesystem::temp_directory_path() / "flowos-source-XXXXXX";
    CHECK(::mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const std::string& path() const { return path_; }
  std::string at(std::string_view name) const { return path_ + "/" + std::string(name); }

  // With all the folders that it lies in.
  void write(std::string_view name, std::string_view content) const {
    std::filesystem::create_directories(std::filesystem::path(at(name)).parent_path());
    std::ofstream file(at(name), std::ios::binary);
    file << content;
    file.close();
    CHECK(file.good());
  }

  void link(std::string_view to, std::string_view name) const {
    CHECK(::symlink(std::string(to).c_str(), at(name).c_str()) == 0);
  }

  // Its time, and that of all in it, is so many seconds ago.
  void age(std::int64_t seconds) const {
    set_age(path_, seconds);
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path_)) {
      set_age(entry.path(), seconds);
    }
  }

  static void set_age(const std::string& path, std::int64_t seconds) {
    const timespec then = {.tv_sec = ::time(nullptr) - seconds, .tv_nsec = 0};
    const std::array<timespec, 2> times = {then, then};
    CHECK(::utimensat(AT_FDCWD, path.c_str(), times.data(), AT_SYMLINK_NOFOLLOW) == 0);
  }

 private:
  std::string path_;
};

inline std::string octal(std::uint64_t value, int digits) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%0*llo", digits, static_cast<unsigned long long>(value));
  return text.data();
}

inline std::string with_sum(std::string header) {
  header.replace(148, 8, 8, ' ');
  std::uint64_t sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  return header.replace(148, 7, octal(sum, 6) + '\0');
}

// One header block; `size` is as it stands there.
inline std::string tar_header(std::string_view name, std::string_view size, char type,
                              std::string_view magic = std::string_view("ustar\00000", 8)) {
  std::string header(512, '\0');
  header.replace(0, name.size(), name);
  header.replace(100, 8, std::string_view("0000644\0", 8));
  header.replace(124, size.size(), size);
  header.replace(136, 12, std::string_view("00000000000\0", 12));
  header[156] = type;
  header.replace(257, magic.size(), magic);
  return with_sum(header);
}

inline std::string padded(std::string content) {
  content.resize((content.size() + 511) / 512 * 512);
  return content;
}

inline std::string tar_member(std::string_view name, std::string_view content, char type = '0') {
  return tar_header(name, octal(content.size(), 11), type) + padded(std::string(content));
}

inline std::string tar_end() { return std::string(1024, '\0'); }

inline std::string pax_record(std::string_view keyword, std::string_view value) {
  const std::size_t rest = keyword.size() + value.size() + 3;
  std::size_t length = rest + 1;
  while (std::to_string(length).size() + rest != length) ++length;
  return std::to_string(length) + " " + std::string(keyword) + "=" + std::string(value) + "\n";
}

template <typename Error, typename Act>
std::string told(const Act& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was told";
}

inline bool says(const std::string& line, std::string_view words) {
  const bool does = line.find(words) != std::string::npos && line.find('\n') == std::string::npos;
  if (!does) std::cerr << "it says: " << line << '\n';
  return does;
}

inline std::vector<std::string> names_of(const flowos::feed::Catalog& catalog) {
  std::vector<std::string> names;
  names.reserve(catalog.count());
  for (std::uint64_t i = 0; i < catalog.count(); ++i) names.push_back(catalog.name(i));
  return names;
}

inline std::string bytes_of(const flowos::feed::Files& files, std::uint64_t sample) {
  const flowos::feed::Opened opened = files.open(sample);
  std::string bytes(opened.size(), '\0');
  files.read(sample, opened, reinterpret_cast<std::byte*>(bytes.data()));
  return bytes;
}

inline std::shared_ptr<const flowos::feed::Catalog> shared(flowos::feed::Catalog catalog) {
  return std::make_shared<const flowos::feed::Catalog>(std::move(catalog));
}

}  // namespace source_tools
