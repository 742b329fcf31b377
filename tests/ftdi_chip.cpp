// Stands for libftdi and an FT232H: the functions of the one, and the pins of the other's
// synchronous FIFO, behind which a board is simulated. Included after the class that Verilator
// wrote.
#include <cstdint>
#include <cstdio>
#include <deque>
#include <memory>
#include <string>
#include <vector>

struct ftdi_context {
  void *usb_ctx, *usb_dev;
  int usb_read_timeout, usb_write_timeout;
};

namespace {

struct Faults {
  std::int64_t open_code, damaged_in, damaged_out, silent_from, lost_at;  // below 0 for none
};

class Chip {
 public:
  Faults faults{0, -1, -1, -1, -1};
  std::string said = "all fine";
  int mode = 0, opened = 0;

  void put(const unsigned char* data, int count) {
    for (int i = 0; i < count; ++i) {
      in_.push_back(data[i] ^ (came_++ == faults.damaged_in ? 0x10 : 0));
    }
  }

  int get(unsigned char* data, int count) {
    for (int cycle = 0; cycle < 3000; ++cycle) clock();
    int found = 0;
    while (found < count && !out_.empty()) {
      data[found++] = out_.front();
      out_.pop_front();
    }
    return found;
  }

  bool lost() const { return faults.lost_at >= 0 && went_ >= faults.lost_at; }
  void forget() { in_.clear(), out_.clear(), came_ = went_ = 0; }

 private:
  static constexpr std::size_t kHolds = 1024;

  bool random() {
    lfsr_ = static_cast<std::uint16_t>(lfsr_ >> 1 ^ ((lfsr_ & 1) != 0 ? 0xB400 : 0));
    return (lfsr_ & 3) != 0;
  }

  void clock() {
    top_->rxf_n = in_.empty() || !random();
    top_->txe_n = out_.size() >= kHolds || !random();
    top_->data_in = in_.empty() ? 0 : in_.front();
    top_->clk = 0;
    top_->eval();
    check();
    const bool gives = !top_->rd_n && !top_->rxf_n, takes = !top_->wr_n && !top_->txe_n;
    if (takes) take(top_->data_out);
    oe_n_ = top_->oe_n;
    drive_ = top_->drive;
    top_->clk = 1;
    top_->eval();
    if (gives) in_.pop_front();
  }

  void check() {
    if (!top_->oe_n && top_->drive) said = "both sides drive the bus";
    if ((!oe_n_ && top_->drive) || (drive_ && !top_->oe_n)) said = "the bus turned at once";
    if (!top_->rd_n && (top_->oe_n || oe_n_)) said = "rd# comes before the bus is driven";
    if (!top_->wr_n && !top_->drive) said = "wr# while the bus is not driven";
  }

  void take(unsigned char byte) {
    const bool silent = faults.silent_from >= 0 && went_ >= faults.silent_from;
    const int damage = went_++ == faults.damaged_out ? 0x10 : 0;
    if (!silent) out_.push_back(static_cast<unsigned char>(byte ^ damage));
  }

  std::unique_ptr<VerilatedContext> context_ = std::make_unique<VerilatedContext>();
  std::unique_ptr<Vmodule> top_ = std::make_unique<Vmodule>(context_.get());
  std::deque<unsigned char> in_, out_;
  std::int64_t came_ = 0, went_ = 0;
  std::uint16_t lfsr_ = 0xACE1;
  bool oe_n_ = true, drive_ = false;
};

Chip& chip() {
  static Chip one;
  return one;
}

}  // namespace

#define PUBLIC extern "C" __attribute__((visibility("default")))

PUBLIC ftdi_context* ftdi_new() { return new ftdi_context{}; }
PUBLIC void ftdi_free(ftdi_context* context) { delete context; }
PUBLIC int ftdi_set_interface(ftdi_context*, int channel) { return channel == 1 ? 0 : -1; }
PUBLIC int ftdi_usb_open_string(ftdi_context*, const char* port) {
  if (chip().faults.open_code < 0) return static_cast<int>(chip().faults.open_code);
  if (std::string(port) != "i:0x0403:0x6014") return -3;
  ++chip().opened;
  return 0;
}
PUBLIC int ftdi_usb_close(ftdi_context*) {
  --chip().opened;
  return 0;
}
PUBLIC int ftdi_set_latency_timer(ftdi_context*, unsigned char) { return 0; }
PUBLIC int ftdi_set_bitmode(ftdi_context*, unsigned char pins, unsigned char mode) {
  chip().mode = mode;
  return pins == 0xFF ? 0 : -1;
}
PUBLIC int ftdi_setflowctrl(ftdi_context*, int control) { return control == 0x100 ? 0 : -1; }
PUBLIC int ftdi_read_data_set_chunksize(ftdi_context*, unsigned) { return 0; }
PUBLIC int ftdi_tcioflush(ftdi_context*) { return 0; }
PUBLIC int ftdi_write_data(ftdi_context* context, const unsigned char* data, int count) {
  if (context->usb_write_timeout <= 0 || chip().mode != 0x40) return -1;
  const int some = count < 100 ? count : 100;
  chip().put(data, some);
  return some;
}
PUBLIC int ftdi_read_data(ftdi_context*, unsigned char* data, int count) {
  const int found = chip().get(data, count);
  if (chip().said != "all fine") return -2;
  return chip().lost() ? -1 : found;
}
PUBLIC const char* ftdi_get_error_string(ftdi_context*) {
  return chip().lost() ? "usb bulk read failed" : chip().said.c_str();
}

// For the test: what goes wrong from now on, and how often the device is open.
PUBLIC void chip_faults(std::int64_t open_code, std::int64_t damaged_in, std::int64_t damaged_out,
                        std::int64_t silent_from, std::int64_t lost_at) {
  chip().faults = {open_code, damaged_in, damaged_out, silent_from, lost_at};
  chip().forget();
}
PUBLIC int chip_opened() { return chip().opened; }
