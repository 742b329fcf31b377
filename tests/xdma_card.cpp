// A card behind two FIFOs, simulated to the streams of XDMA: bytes that come are words of H2C_0,
// and those of C2H_0 go back. It
// stands still once no word moved for a while. Included after the class that Verilator wrote.
#include <poll.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

namespace {

class Card {
 public:
  Card(int to, int back, std::int64_t silent_from, std::int64_t quiet_after)
      : to_(to), back_(back), silent_from_(silent_from), quiet_after_(quiet_after) {
    top_->aresetn = 1;
  }

  // idle: cycles since a word moved, for the test.
  void run(const volatile std::int32_t& stop, volatile std::int64_t& idle) {
    while (stop == 0) {
      idle = out_.empty() ? idle_ : 0;
      take(quiet() ? 20 : 0);
      for (int cycle = 0; cycle < 1000 && !quiet(); ++cycle) clock();
      if (!out_.empty()) idle = 0;
      give();
    }
  }

 private:
  static constexpr std::size_t kBytes = sizeof(Vmodule::s_axis_tdata);
  static constexpr std::size_t kHolds = 4096;

  bool random() {
    lfsr_ = static_cast<std::uint16_t>(lfsr_ >> 1 ^ ((lfsr_ & 1) != 0 ? 0xB400 : 0));
    return (lfsr_ & 3) != 0;
  }

  bool offers() const { return in_.size() - at_ >= kBytes; }
  bool quiet() const { return idle_ > quiet_after_; }

  void take(int milliseconds) {
    if (in_.size() - at_ > kHolds) return;
    pollfd waits{to_, POLLIN, 0};
    poll(&waits, 1, milliseconds);
    if ((waits.revents & POLLIN) == 0) return;
    in_.erase(in_.begin(), in_.begin() + static_cast<std::ptrdiff_t>(at_));
    at_ = 0;
    unsigned char bytes[kHolds];
    const ssize_t count = read(to_, bytes, sizeof bytes);
    if (count > 0) in_.insert(in_.end(), bytes, bytes + count);
    idle_ = 0;
  }

  void give() {
    const ssize_t count = out_.empty() ? 0 : write(back_, out_.data(), out_.size());
    if (count <= 0) return;
    out_.erase(out_.begin(), out_.begin() + count);
    idle_ = 0;
  }

  void clock() {
    ++idle_;
    if (!waits_) top_->s_axis_tvalid = offers() && random();
    if (top_->s_axis_tvalid) std::memcpy(&top_->s_axis_tdata, &in_[at_], kBytes);
    top_->m_axis_tready = out_.size() < kHolds && random();
    top_->aclk = 0;
    top_->eval();
    const bool takes = top_->s_axis_tvalid && top_->s_axis_tready;
    if (top_->m_axis_tvalid && top_->m_axis_tready) put();
    waits_ = top_->s_axis_tvalid && !takes;
    top_->aclk = 1;
    top_->eval();
    if (!takes) return;
    at_ += kBytes;
    idle_ = 0;
  }

  void put() {
    unsigned char word[kBytes];
    std::memcpy(word, &top_->m_axis_tdata, kBytes);
    went_ += kBytes;
    idle_ = 0;
    if (silent_from_ >= 0 && went_ > silent_from_) return;
    out_.insert(out_.end(), word, word + kBytes);
  }

  int to_, back_;
  std::int64_t silent_from_, quiet_after_, went_ = 0, idle_ = 0;
  std::uint16_t lfsr_ = 0xACE1;
  bool waits_ = false;
  std::unique_ptr<VerilatedContext> context_ = std::make_unique<VerilatedContext>();
  std::unique_ptr<Vmodule> top_ = std::make_unique<Vmodule>(context_.get());
  std::vector<unsigned char> in_, out_;
  std::size_t at_ = 0;
};

}  // namespace

extern "C" __attribute__((visibility("default"))) void run_card(int to, int back,
                                                                const volatile std::int32_t* stop,
                                                                std::int64_t silent_from,
                                                                std::int64_t quiet_after,
                                                                volatile std::int64_t* idle) {
  Card(to, back, silent_from, quiet_after).run(*stop, *idle);
}
