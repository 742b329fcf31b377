#pragma once

#include <cstddef>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace flowos::bench {

// Prints one line to standard error and exits.
[[noreturn]] inline void give_up(const std::string& why) {
  std::cerr << why << '\n';
  std::exit(1);
}

// A command line: `--name VALUE` pairs, each with a default, and words.
class Words {
 public:
  Words(int count, char** all, std::map<std::string, double> numbers, std::size_t words,
        const std::string& usage)
      : numbers_(std::move(numbers)) {
    const std::string wrong = "usage: " + usage;
    for (int i = 1; i < count; ++i) {
      const std::string word = all[i];
      if (word.rfind("--", 0) != 0) {
        words_.push_back(word);
        continue;
      }
      const auto known = numbers_.find(word.substr(2));
      if (known == numbers_.end() || ++i == count) give_up(wrong);
      char* end = nullptr;
      known->second = std::strtod(all[i], &end);
      if (end == all[i] || *end != 0 || known->second < 0) {
        give_up(word + " takes a number, not '" + all[i] + "'; " + wrong);
      }
    }
    if (words_.size() != words) give_up(wrong);
  }

  double number(const std::string& name) const { return numbers_.at(name); }
  const std::string& operator[](std::size_t place) const { return words_[place]; }

 private:
  std::map<std::string, double> numbers_;
  std::vector<std::string> words_;
};

// Answers each line of the standard input with a line; returns at its end, which is also when the
// parent process has ended.
inline void serve_questions(const std::function<std::string()>& answer) {
  for (std::string line; std::getline(std::cin, line);) {
    std::cout << answer() << '\n' << std::flush;
  }
}

}  // namespace flowos::bench
