#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/for_each.h"

namespace flowos::solve {

// The colour of a node that has none yet.
constexpr std::int32_t kNoColour = -1;

// Greedy colouring of a graph, one node after another: the lowest colour that no neighbour has, or,
// of so many colours, the next in turn. For one thread each.
class Painter {
 public:
  explicit Painter(int colours = 0) : colours_(colours), last_(at(colours) + 1, -1) {}

  // A neighbour of this node has this colour, or none.
  void forbid(std::int32_t colour, std::int32_t node) {
    const std::size_t number = number_of(colour);
    if (number >= last_.size()) last_.resize(number + 1, -1);
    last_[number] = node;
  }

  // A colour that was not forbidden.
  std::int32_t choose(std::int32_t node) {
    for (int i = 0; i < colours_; ++i) {
      const int colour = (turn_ + i) % colours_;
      if (!is_allowed(colour, node)) continue;
      turn_ = (colour + 1) % colours_;
      return colour;
    }
    std::int32_t colour = colours_;
    while (!is_allowed(colour, node)) ++colour;
    return colour;
  }

 private:
  bool is_allowed(std::int32_t colour, std::int32_t node) const {
    return number_of(colour) >= last_.size() || last_[number_of(colour)] != node;
  }

  // That of kNoColour is 0.
  static std::size_t number_of(std::int32_t colour) { return at(colour - kNoColour); }

  int colours_;                     // 0: as few as come of themselves
  std::vector<std::int32_t> last_;  // for each colour the last node that may not have it
  int turn_ = 0;
};

}  // namespace flowos::solve
