// Shared code of contestants in C++: PROGRAM MATRIX B X RTOL [OPTION...].
// The matrix file is csr_file.py's. Seconds count from a rank's rows in memory to x in memory.
#pragma once

#include <sys/resource.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace contest {

[[noreturn]] inline void fail(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::exit(1);
}

class File {
 public:
  File(const std::string& path, const char* mode)
      : path_(path), file_(std::fopen(path.c_str(), mode)) {
    if (file_ == nullptr) fail(path + ": cannot be opened");
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() { std::fclose(file_); }

  template <class T>
  void read(std::int64_t offset, std::vector<T>& into) {
    seek(offset);
    if (std::fread(into.data(), sizeof(T), into.size(), file_) != into.size())
      fail(path_ + ": ends too early");
  }
  void write(std::int64_t offset, const double* from, std::size_t count) {
    seek(offset);
    if (std::fwrite(from, sizeof(double), count, file_) != count)
      fail(path_ + ": cannot be written");
  }

 private:
  void seek(std::int64_t offset) {
    if (std::fseek(file_, static_cast<long>(offset), SEEK_SET) != 0) fail(path_ + ": cannot seek");
  }

  std::string path_;
  std::FILE* file_;
};

// The rows [first, first + starts.size() - 1) of a matrix of `rows`, with columns of the whole.
struct Rows {
  std::int64_t rows = 0, first = 0;
  std::vector<double> values;
  std::vector<int> starts, columns;

  int count() const { return static_cast<int>(starts.size()) - 1; }
};

inline Rows read_rows(const std::string& path, int part, int parts) {
  constexpr std::int64_t kHead = 16;
  File file(path, "rb");
  std::vector<std::int64_t> head(2);
  file.read(0, head);
  const std::int64_t rows = head[0], entries = head[1], starts_at = kHead + 8 * entries;
  Rows own;
  own.rows = rows;
  own.first = rows * part / parts;
  own.starts.resize(static_cast<std::size_t>(rows * (part + 1) / parts - own.first + 1));
  file.read(starts_at + 4 * own.first, own.starts);
  const std::int64_t from = own.starts.front();
  for (int& start : own.starts) start -= static_cast<int>(from);
  own.values.resize(static_cast<std::size_t>(own.starts.back()));
  own.columns.resize(own.values.size());
  file.read(kHead + 8 * from, own.values);
  file.read(starts_at + 4 * (rows + 1) + 4 * from, own.columns);
  return own;
}

inline std::vector<double> read_vector(const std::string& path, const Rows& own) {
  std::vector<double> vector(static_cast<std::size_t>(own.count()));
  File(path, "rb").read(8 * own.first, vector);
  return vector;
}

// The file exists with its full length, as several ranks write their parts.
inline void write_vector(const std::string& path, const Rows& own, const double* x) {
  File(path, "r+b").write(8 * own.first, x, static_cast<std::size_t>(own.count()));
}

inline double seconds() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

// The peak memory of this process.
inline double memory_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024;
}

struct Result {
  double setup_seconds = 0, solve_seconds = 0;
  std::int64_t iterations = 0;
  double memory_bytes = 0;
};

inline void print_result(const Result& result) {
  std::printf(
      "{\"setup_seconds\": %.6f, \"solve_seconds\": %.6f, \"iterations\": %lld, "
      "\"memory_bytes\": %.0f}\n",
      result.setup_seconds, result.solve_seconds, static_cast<long long>(result.iterations),
      result.memory_bytes);
}

}  // namespace contest
