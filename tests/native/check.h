#pragma once

#include <cstdlib>
#include <iostream>

// Ends the test with the place and the condition that does not hold.
#define CHECK(condition) check(static_cast<bool>(condition), #condition, __FILE__, __LINE__)

inline void check(bool holds, const char* condition, const char* file, int line) {
  if (holds) return;
  std::cerr << file << ':' << line << ": does not hold: " << condition << '\n';
  std::exit(1);
}
