#pragma once

#include <cstdlib>
#include <iostream>

// Whether ThreadSanitizer watches. (gcc has a macro for it, clang another.)
#if defined(FLOWOS_UNDER_TSAN)
inline constexpr bool kUnderTsan = true;
#else
inline constexpr bool kUnderTsan = false;
#endif

// Ends the test with the place and the condition that does not hold.
#define CHECK(condition) check(static_cast<bool>(condition), #condition, __FILE__, __LINE__)

inline void check(bool holds, const char* condition, const char* file, int line) {
  if (holds) return;
  std::cerr << file << ':' << line << ": does not hold: " << condition << '\n';
  std::exit(1);
}
