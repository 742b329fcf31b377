// Verilator's library, for all modules of a machine. What would end the program there (VL_USER_...
// leaves it to us) ends the run: $finish, $stop, $fatal, or a loop that does not settle.
#define VL_USER_FINISH
#define VL_USER_STOP
#define VL_USER_FATAL
#include <array>
#include <stdexcept>
#include <string>

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
void vl_stop(const char* file, int line, const char* /*hierarchy*/) { ended("$stop", file, line); }
void vl_fatal(const char* file, int line, const char* /*hierarchy*/, const char* says) {
  ended(says, file, line);
}
