#pragma once

#include <stdexcept>
#include <string>

namespace flowos::solve {

// A matrix or right-hand side that cannot be solved with: one line, what, where, how to mend it.
class MatrixError : public std::runtime_error {
 public:
  explicit MatrixError(const std::string& what) : std::runtime_error(what) {}
};

}  // namespace flowos::solve
