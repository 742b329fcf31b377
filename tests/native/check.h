#pragma once

#include <cstdlib>
#include <iostream>

// Ends the test with the place and the condition that does not hold.
#define CHECK(condition)                                                                    \
  do {                                                                                      \
    if (!(condition)) {                                                                     \
      std::cerr << __FILE__ << ':' << __LINE__ << ": does not hold: " << #condition << '\n'; \
      std::exit(1);                                                                         \
    }                                                                                       \
  } while (false)
