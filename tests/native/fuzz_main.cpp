// Runs a fuzzer on its seeds and on mutations of them, the same ones every time. With a folder
// named, writes the seeds there instead, for libFuzzer to begin with.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <ios>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "check.h"
#include "fuzz.h"

namespace {

constexpr int rounds = 20000;

// Of the numbers that formats trip over.
constexpr std::string_view special("\x00\xFF\x7F\x80 0179=\n./", 13);

void change(std::string& input, const std::string& other, std::mt19937& random) {
  const auto below = [&](std::size_t end) { return random() % std::max<std::size_t>(end, 1); };
  const std::size_t at = below(input.size());
  const std::size_t length = std::min(input.size() - at, std::size_t{1} << below(12));
  switch (random() % 6) {
    case 0:
      if (!input.empty()) input[at] = static_cast<char>(random());
      return;
    case 1:
      if (!input.empty()) input[at] = special[below(special.size())];
      return;
    case 2:
      input.resize(at);
      return;
    case 3:
      input.erase(at, length);
      return;
    case 4:
      input.insert(below(input.size()), input.substr(at, length));
      return;
    default:
      input.replace(at, length, other.substr(below(other.size()), length));
  }
}

void run(const std::string& input) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
}

}  // namespace

int main(int count, char** words) {
  const std::vector<std::string> seeds = fuzz_seeds();
  CHECK(!seeds.empty());
  if (count > 1) {
    for (std::size_t i = 0; i < seeds.size(); ++i) {
      std::ofstream(std::string(words[1]) + "/seed" + std::to_string(i), std::ios::binary)
          << seeds[i];
    }
    return 0;
  }
  for (const std::string& seed : seeds) run(seed);
  std::mt19937 random(4);
  for (int round = 0; round < rounds; ++round) {
    std::string input = seeds[random() % seeds.size()];
    const std::string& other = seeds[random() % seeds.size()];
    for (unsigned changes = 1 + random() % 4; changes-- > 0;) change(input, other, random);
    run(input);
  }
}
