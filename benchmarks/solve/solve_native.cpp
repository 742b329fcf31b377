// FlowOS's library without Python: for answers of builds other than the wheel's.
// OPTIONS: threads=N precision=fp64 coarse=none
#include <krylov/solver.h>

#include <exception>
#include <span>
#include <string_view>

#include "contest.h"

namespace {

// NAME=VALUE, as for the wheel.
flowos::solve::Settings settings_of(int count, char** options) {
  flowos::solve::Settings settings;
  for (const std::string_view option : std::span(options, static_cast<std::size_t>(count)))
    if (option.starts_with("threads="))
      settings.threads = std::atoi(option.substr(8).data());
    else if (option == "precision=fp64")
      settings.precision = flowos::solve::Precision::fp64;
    else if (option == "coarse=none")
      settings.coarse = flowos::solve::Coarse::none;
    else
      contest::fail("unknown option " + std::string(option));
  return settings;
}

void run(int argc, char** argv) {
  const contest::Rows all = contest::read_rows(argv[1], 0, 1);
  const std::vector<double> b = contest::read_vector(argv[2], all);
  std::vector<double> x(b.size());
  const flowos::solve::Settings settings = settings_of(argc - 5, argv + 5);
  const double began = contest::seconds();
  flowos::solve::Solver solver(flowos::solve::Csr<int>{all.count(), all.starts.data(),
                                                       all.columns.data(), all.values.data()},
                               settings);
  const double ready = contest::seconds();
  const auto info = solver.solve(b, x, {.rtol = std::atof(argv[4])});
  contest::print_result({.setup_seconds = ready - began,
                         .solve_seconds = contest::seconds() - ready,
                         .iterations = info.iterations,
                         .memory_bytes = contest::memory_bytes()});
  contest::write_vector(argv[3], all, x.data());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) contest::fail("usage: MATRIX B X RTOL [NAME=VALUE...]");
  try {
    run(argc, argv);
  } catch (const std::exception& error) {
    contest::fail(error.what());
  }
}
