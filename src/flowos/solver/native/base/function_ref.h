#pragma once

#include <memory>

namespace flowos::solve {

template <class Signature>
class FunctionRef;

// Refers to something that can be called, which outlives it: std::function_ref of C++26. What takes
// one is compiled once, not once for each lambda.
template <class Result, class... Arguments>
class FunctionRef<Result(Arguments...)> {
 public:
  template <class Function>
  FunctionRef(const Function& function)
      : function_(std::addressof(function)), call_(&call<Function>) {}

  Result operator()(Arguments... arguments) const { return call_(function_, arguments...); }

 private:
  template <class Function>
  static Result call(const void* function, Arguments... arguments) {
    return (*static_cast<const Function*>(function))(arguments...);
  }

  const void* function_;
  Result (*call_)(const void*, Arguments...);
};

}  // namespace flowos::solve
