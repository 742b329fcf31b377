#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "krylov/solver.h"
#include "matrix/grid.h"

namespace flowos::solve {

inline constexpr std::string_view kUsage =
    "usage: solve_mpi poisson:NXxNYxNZ|g3like|FILE.mtx [--block-rows N] [--colours N] [--relax W] "
    "[--precision fp32|fp64] [--coarse auto|none|aggregates] [--rtol R] [--max-iterations N] "
    "[--seconds S] [--seed N] [--triad ELEMENTS]";

class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// What a person asked for.
struct Options {
  std::string problem;
  Settings settings;
  Goal goal;
  double seconds = 0;               // for how long solving is repeated; once in any case
  std::uint64_t seed = 1;           // of g3like, and of a right-hand side that is not all ones
  std::int64_t triad_elements = 0;  // 0: memory bandwidth is not measured
};

template <class Number>
Number number_in(std::string_view word, std::string_view option, Number least, Number most) {
  Number value{};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc{} || end != word.data() + word.size() || !(value >= least) ||
      !(value <= most))
    throw UsageError(std::string(option) + " " + std::string(word) + ": give a number from " +
                     std::to_string(least) + " to " + std::to_string(most));
  return value;
}

inline Precision precision_in(std::string_view word) {
  if (word == "fp32") return Precision::fp32;
  if (word == "fp64") return Precision::fp64;
  throw UsageError("--precision " + std::string(word) + ": give fp32 or fp64");
}

inline Coarse coarse_in(std::string_view word) {
  if (word == "auto") return Coarse::automatic;
  if (word == "none") return Coarse::none;
  if (word == "aggregates") return Coarse::aggregates;
  throw UsageError("--coarse " + std::string(word) + ": give auto, none or aggregates");
}

inline void set_option(Options& options, std::string_view name, std::string_view word) {
  constexpr std::int64_t most = std::int64_t{1} << 40;
  if (name == "--block-rows")
    options.settings.block_rows = number_in(word, name, 1, 4096);
  else if (name == "--colours")
    options.settings.colours = number_in(word, name, 1, 1024);
  else if (name == "--relax")
    options.settings.relax = number_in(word, name, 0.0, 1.0);
  else if (name == "--precision")
    options.settings.precision = precision_in(word);
  else if (name == "--coarse")
    options.settings.coarse = coarse_in(word);
  else if (name == "--rtol")
    options.goal.rtol = number_in(word, name, 0.0, 1.0);
  else if (name == "--max-iterations")
    options.goal.max_iterations = number_in<std::int64_t>(word, name, 1, most);
  else if (name == "--seconds")
    options.seconds = number_in(word, name, 0.0, 1e6);
  else if (name == "--seed")
    options.seed = number_in<std::uint64_t>(word, name, 0, ~std::uint64_t{0});
  else if (name == "--triad")
    options.triad_elements = number_in<std::int64_t>(word, name, 0, most);
  else
    throw UsageError(std::string(name) + " is no option; " + std::string(kUsage));
}

// Throws UsageError, one line.
inline Options options_in(int count, char** words) {
  if (count < 2) throw UsageError(std::string(kUsage));
  Options options;
  options.problem = words[1];
  for (int i = 2; i < count; i += 2) {
    if (i + 1 == count) throw UsageError(std::string(words[i]) + ": give its value");
    set_option(options, words[i], words[i + 1]);
  }
  return options;
}

// The grid of "poisson:NXxNYxNZ".
inline Grid grid_in(std::string_view word) {
  std::array<std::int64_t, 3> sizes{};
  std::string_view rest = word.substr(word.find(':') + 1);
  for (int axis = 0; axis < 3; axis++) {
    const std::size_t end = axis < 2 ? rest.find('x') : rest.size();
    if (end == std::string_view::npos)
      throw UsageError(std::string(word) + ": give three sizes, as poisson:128x128x128");
    sizes[static_cast<std::size_t>(axis)] =
        number_in<std::int64_t>(rest.substr(0, end), word, 1, std::int64_t{1} << 30);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  if (sizes[0] * sizes[1] > (std::int64_t{1} << 31) / sizes[2])
    throw UsageError(std::string(word) + ": more cells than 32 bits count");
  return {.cells = {sizes[2], sizes[1], sizes[0]}};
}

}  // namespace flowos::solve
