// A board behind a pseudo-terminal, simulated to its pins: bytes that come are clocked into `rx`
// bit by bit, and those that `tx` shows go back. Included after the class that Verilator wrote.
#include <poll.h>
#include <unistd.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

namespace {

struct Faults {
  std::int64_t damaged_in, damaged_out, silent_from;  // numbers of bytes, below 0 for none
};

class Board {
 public:
  Board(int line, int divisor, const Faults& faults)
      : line_(line), divisor_(divisor), faults_(faults) {
    top_->rx = 1;
  }

  void run(const volatile std::int32_t& stop) {
    while (stop == 0) {
      take(quiet() ? 20 : 0);
      for (int cycle = 0; cycle < 1000 && !quiet(); ++cycle) clock();
      give();
    }
  }

 private:
  bool quiet() const { return in_.empty() && idle_ > 20000; }

  void take(int milliseconds) {
    pollfd waits{line_, POLLIN, 0};
    poll(&waits, 1, milliseconds);
    if ((waits.revents & POLLIN) == 0) return;
    unsigned char bytes[1024];
    const ssize_t count = read(line_, bytes, sizeof bytes);
    for (ssize_t i = 0; i < count; ++i) {
      in_.push_back(bytes[i] ^ (came_++ == faults_.damaged_in ? 0x10 : 0));
    }
    idle_ = 0;
  }

  void give() {
    for (std::size_t i = 0; i < out_.size();) {
      const ssize_t count = write(line_, &out_[i], out_.size() - i);
      if (count < 0) break;
      i += static_cast<std::size_t>(count);
    }
    out_.clear();
  }

  void clock() {
    ++idle_;
    if (in_bits_ == 0 && !in_.empty()) {
      in_shift_ = in_.front() << 1 | 0x200;
      in_.pop_front();
      in_bits_ = 10;
      in_count_ = divisor_;
    }
    top_->rx = in_bits_ == 0 || (in_shift_ & 1);
    if (in_bits_ > 0 && --in_count_ == 0) {
      in_shift_ >>= 1;
      in_count_ = divisor_;
      --in_bits_;
      idle_ = 0;
    }
    top_->clk = 0;
    top_->eval();
    top_->clk = 1;
    top_->eval();
    sample();
  }

  void sample() {
    if (out_bits_ == 0) {
      if (top_->tx != 0) return;
      out_bits_ = 9;
      out_count_ = divisor_ + divisor_ / 2;
    } else if (--out_count_ == 0) {
      out_count_ = divisor_;
      if (--out_bits_ > 0) {
        out_byte_ = out_byte_ >> 1 | (top_->tx != 0 ? 0x80 : 0);
      } else {
        const bool silent = faults_.silent_from >= 0 && went_ >= faults_.silent_from;
        const int damage = went_++ == faults_.damaged_out ? 0x10 : 0;
        if (!silent) out_.push_back(static_cast<unsigned char>(out_byte_ ^ damage));
      }
    }
    idle_ = 0;
  }

  int line_, divisor_;
  Faults faults_;
  std::unique_ptr<VerilatedContext> context_ = std::make_unique<VerilatedContext>();
  std::unique_ptr<Vmodule> top_ = std::make_unique<Vmodule>(context_.get());
  std::deque<unsigned char> in_;
  std::vector<unsigned char> out_;
  int in_bits_ = 0, in_count_ = 0, in_shift_ = 0, out_bits_ = 0, out_count_ = 0, out_byte_ = 0;
  std::int64_t came_ = 0, went_ = 0, idle_ = 0;
};

}  // namespace

extern "C" __attribute__((visibility("default"))) void run_board(int line, int divisor,
                                                                 const volatile std::int32_t* stop,
                                                                 std::int64_t damaged_in,
                                                                 std::int64_t damaged_out,
                                                                 std::int64_t silent_from) {
  Board(line, divisor, {damaged_in, damaged_out, silent_from}).run(*stop);
}
