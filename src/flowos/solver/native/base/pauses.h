#pragma once

#include <functional>
#include <utility>

namespace flowos::solve {

// What the thread that makes this does now and then while it computes for long, for as long as this
// lives: such as to look whether the person pressed Ctrl-C. What it throws ends the computation.
class Pauses {
 public:
  explicit Pauses(std::function<void()> look)
      : look_(std::move(look)), before_(std::exchange(current(), this)) {}
  ~Pauses() { current() = before_; }
  Pauses(const Pauses&) = delete;
  Pauses& operator=(const Pauses&) = delete;

  static void look() {
    if (current() != nullptr) current()->look_();
  }

 private:
  static Pauses*& current() {
    thread_local Pauses* pauses = nullptr;
    return pauses;
  }

  std::function<void()> look_;
  Pauses* before_;
};

}  // namespace flowos::solve
