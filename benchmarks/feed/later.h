#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <queue>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "link.h"

namespace flowos::bench {

// Answers, each sent when it is due.
class Later {
 public:
  explicit Later(unsigned threads) {
    for (unsigned i = 0; i < threads; ++i) threads_.emplace_back([this] { send(); });
  }
  ~Later() {
    {
      const std::lock_guard<std::mutex> guard(lock_);
      ends_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  Later(const Later&) = delete;
  Later& operator=(const Later&) = delete;

  void at(Clock::time_point due, std::function<void()> answer) {
    const std::lock_guard<std::mutex> guard(lock_);
    const bool first = queue_.empty() || due < queue_.top().due;
    queue_.push({due, number_++, std::move(answer)});
    if (first) changed_.notify_one();
  }

 private:
  struct Answer {
    Clock::time_point due;
    std::uint64_t number;
    std::function<void()> send;
    bool operator<(const Answer& other) const {
      return std::tie(other.due, other.number) < std::tie(due, number);  // earliest on top
    }
  };

  void send() {
    std::unique_lock<std::mutex> hold(lock_);
    while (!ends_) {
      if (queue_.empty()) {
        changed_.wait(hold);
      } else if (const Clock::time_point due = queue_.top().due; Clock::now() < due) {
        changed_.wait_until(hold, due);
      } else {
        const std::function<void()> answer = std::move(const_cast<Answer&>(queue_.top()).send);
        queue_.pop();
        if (!queue_.empty()) changed_.notify_one();
        hold.unlock();
        answer();
        hold.lock();
      }
    }
  }

  std::mutex lock_;
  std::condition_variable changed_;
  std::priority_queue<Answer> queue_;
  std::uint64_t number_ = 0;
  bool ends_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace flowos::bench
