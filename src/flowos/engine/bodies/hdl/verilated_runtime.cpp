// Verilator's library, for all modules of a machine. What would end the program there (VL_USER_...
// leaves it to us) ends the run: $finish, $stop, $fatal, or a loop that does not settle.
#define VL_USER_FINISH
#define VL_USER_STOP
#define VL_USER_FATAL
#define VL_PRINTF flowos_print
#include <array>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <utility>

namespace {
thread_local std::string failed;  // the text of the last $error or $fatal
template <typename... Parts>
void flowos_print(const char* format, Parts... parts) {
  std::printf(format, parts...);
}
// As "[0] %Error: source.v:2: Assertion failed in TOP.m: the text".
void flowos_print(const char* format, const char* line) {
  std::printf(format, line);
  const std::string text = line;
  const std::size_t at = text.find(": Assertion failed in ");
  const std::size_t begin = at == std::string::npos ? at : text.find(": ", at + 2);
  if (begin != std::string::npos && text.find("%Error: ") < at) failed = text.substr(begin + 2);
}
}  // namespace

#include "verilated.cpp"
#include "verilated_threads.cpp"

namespace {
[[noreturn]] void ended(const std::string& by, const char* file, int line) {
  const std::string where = file != nullptr && *file != '\0' ? file : "";
  throw std::runtime_error(where.empty() ? by : where + ":" + std::to_string(line) + ": " + by);
}
thread_local std::array<std::int64_t, 64> state{};
thread_local std::string stopped_by;
}  // namespace

// What the last run of this thread came to.
extern "C" std::int64_t* flowos_state() { return state.data(); }
extern "C" void flowos_stopped(const char* by) { stopped_by = by; }
extern "C" const char* flowos_stopped_by() { return stopped_by.c_str(); }

void vl_finish(const char* file, int line, const char* /*hierarchy*/) {
  ended("$finish", file, line);
}
void vl_stop(const char* file, int line, const char* /*hierarchy*/) {
  const std::string text = std::exchange(failed, "");
  ended(text.empty() ? "$stop" : text, file, line);
}
void vl_fatal(const char* file, int line, const char* /*hierarchy*/, const char* says) {
  ended(says, file, line);
}
