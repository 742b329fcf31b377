// The solver, which looks at the caller's arrays, and what reads and generates matrices.

#include "krylov/solver.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>  // IWYU pragma: keep
#include <pyerrors.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/pauses.h"
#include "bind.h"
#include "gil.h"
#include "lent.h"
#include "matrix/assemble.h"
#include "matrix/generate.h"
#include "matrix/matrix.h"
#include "matrix/matrix_market.h"

namespace nb = nanobind;
namespace solve = flowos::solve;

namespace {

template <typename T>
using Looked = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Written = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Matrix = solve::OwnedCsr<std::int32_t>;

// How often a long computation asks whether the person pressed Ctrl-C.
constexpr std::chrono::milliseconds kLook{50};

template <typename Value, std::size_t kCount>
Value named(const char* what, const std::string& name,
            const std::array<std::pair<std::string_view, Value>, kCount>& values) {
  for (const auto& [its_name, value] : values) {
    if (name == its_name) return value;
  }
  throw nb::value_error((std::string(what) + ": there is no " + name).c_str());
}

constexpr std::array<std::pair<std::string_view, solve::Precision>, 3> kPrecisions = {{
    {"auto", solve::Precision::automatic},
    {"fp32", solve::Precision::fp32},
    {"fp64", solve::Precision::fp64},
}};
constexpr std::array<std::pair<std::string_view, solve::Coarse>, 3> kCoarse = {{
    {"auto", solve::Coarse::automatic},
    {"none", solve::Coarse::none},
    {"aggregates", solve::Coarse::aggregates},
}};
constexpr std::array<std::pair<std::string_view, solve::Nullspace>, 2> kNullspaces = {{
    {"none", solve::Nullspace::none},
    {"constant", solve::Nullspace::constant},
}};
constexpr std::array<std::pair<std::string_view, solve::Reason>, 6> kReasons = {{
    {"converged", solve::Reason::converged},
    {"iterations", solve::Reason::iterations},
    {"indefinite", solve::Reason::indefinite},
    {"stagnated", solve::Reason::stagnated},
    {"stopped", solve::Reason::stopped},
    {"inconsistent", solve::Reason::inconsistent},
}};

template <typename Value, std::size_t kCount>
std::string name_of(Value searched,
                    const std::array<std::pair<std::string_view, Value>, kCount>& values) {
  for (const auto& [name, value] : values) {
    if (value == searched) return std::string(name);
  }
  return "";
}

void describe(solve::Settings* at, int block_rows, int colours, double relax,
              const std::string& precision, const std::string& coarse, const std::string& nullspace,
              int threads) {
  new (at) solve::Settings{.block_rows = block_rows,
                           .colours = colours,
                           .relax = relax,
                           .precision = named("precision", precision, kPrecisions),
                           .coarse = named("coarse", coarse, kCoarse),
                           .nullspace = named("nullspace", nullspace, kNullspaces),
                           .threads = threads};
}

template <typename Index>
solve::Csr<Index> viewed(const Looked<Index>& starts, const Looked<Index>& columns,
                         const Looked<double>& values) {
  const std::size_t entries = columns.size();
  if (starts.size() == 0 || values.size() != entries || starts.data()[0] != 0 ||
      std::cmp_not_equal(starts.data()[starts.size() - 1], entries)) {
    throw nb::value_error("starts: from 0 to as many as there are columns and values");
  }
  return {.rows = static_cast<std::int64_t>(starts.size()) - 1,
          .starts = starts.data(),
          .columns = columns.data(),
          .values = values.data()};
}

// Raises what a signal calls for, when it is time to look.
class Look {
 public:
  void operator()() {
    const auto now = std::chrono::steady_clock::now();
    if (now - looked_ < kLook) return;
    looked_ = now;
    const GilAcquire locked;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }

 private:
  std::chrono::steady_clock::time_point looked_ = std::chrono::steady_clock::now();
};

// Runs without the GIL; Ctrl-C interrupts it.
template <typename Make>
auto without_gil(const Make& make) {
  const GilRelease unlocked;
  const solve::Pauses pauses{Look()};
  return make();
}

// Keeps the arrays that the solver looks at.
class Solver {
 public:
  template <typename Index>
  Solver(const Looked<Index>& starts, const Looked<Index>& columns, const Looked<double>& values,
         const solve::Settings& settings)
      : kept_{nb::ndarray<>(starts), nb::ndarray<>(columns), nb::ndarray<>(values)},
        solver_(
            without_gil([&] { return solve::Solver(viewed(starts, columns, values), settings); })) {
  }

  solve::Solver& operator*() { return solver_; }
  const solve::SetupSummary& setup() const { return solver_.setup(); }

 private:
  std::array<nb::ndarray<>, 3> kept_;
  solve::Solver solver_;
};

template <typename Index>
void make(Solver* at, const Looked<Index>& starts, const Looked<Index>& columns,
          const Looked<double>& values, const solve::Settings& settings) {
  new (at) Solver(starts, columns, values, settings);
}

// With the estimated residual after each iteration.
struct Solved : solve::Info {
  std::vector<double> residuals;
};

// What the iteration calls: Python's own callback, and now and then a look for Ctrl-C. What is
// raised ends the iteration, and is raised where that has ended. Keeps the residuals.
class CallbackRunner {
 public:
  explicit CallbackRunner(nb::handle callback) : callback_(callback) {}

  bool goes_on(std::int64_t iteration, double residual) {
    residuals.push_back(residual);
    const auto now = std::chrono::steady_clock::now();
    if (callback_.is_none() && now - looked_ < kLook) return true;
    looked_ = now;
    const GilAcquire locked;
    try {
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
      return callback_.is_none() ||
             !nb::object(callback_(iteration, residual)).is(nb::bool_(false));
    } catch (...) {
      raised_ = std::current_exception();
      return false;
    }
  }

  void raise_if_raised() const {
    if (raised_) std::rethrow_exception(raised_);
  }

  std::vector<double> residuals;

 private:
  nb::handle callback_;
  std::chrono::steady_clock::time_point looked_ = std::chrono::steady_clock::now();
  std::exception_ptr raised_;
};

void check_rows(std::size_t has, std::int64_t rows) {
  if (std::cmp_not_equal(has, rows)) throw nb::value_error("a vector: as long as the matrix");
}

Solved solved(Solver& solver, const Looked<double>& b, const Written& x, double rtol, double atol,
              std::int64_t max_iterations, nb::handle callback) {
  check_rows(b.size(), static_cast<std::int64_t>(x.size()));
  const std::span right(b.data(), b.size());
  const std::span answer(x.data(), x.size());
  const solve::Goal goal = {.rtol = rtol, .atol = atol, .max_iterations = max_iterations};
  CallbackRunner runner(callback);
  solve::Info info;
  {
    const GilRelease unlocked;
    info = (*solver).solve(right, answer, goal, [&](std::int64_t iteration, double residual) {
      return runner.goes_on(iteration, residual);
    });
  }
  runner.raise_if_raised();
  return {info, std::move(runner.residuals)};
}

void precondition(Solver& solver, const Looked<double>& r, const Written& z) {
  check_rows(r.size(), static_cast<std::int64_t>(z.size()));
  const std::span right(r.data(), r.size());
  const std::span answer(z.data(), z.size());
  const GilRelease unlocked;
  (*solver).precondition(right, answer);
}

template <typename T>
using Lent1 = nb::ndarray<nb::numpy, T, nb::ndim<1>, nb::c_contig>;

template <auto kMember>
auto array_of(nb::handle_t<Matrix> self) {
  auto& values = (*nb::inst_ptr<Matrix>(self)).*kMember;
  using T = typename std::remove_reference_t<decltype(values)>::value_type;
  return Lent1<T>(values.data(), {values.size()}, self);
}

Matrix parsed(nb::handle text, int threads) {
  const Lent lent(text);
  const auto bytes = lent.bytes();
  return without_gil([&] {
    return solve::parse_matrix_market({reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                                      threads);
  });
}

template <typename Index>
Matrix from_lower(const Looked<Index>& starts, const Looked<Index>& columns,
                  const Looked<double>& values) {
  const solve::Csr<Index> matrix = viewed(starts, columns, values);
  return without_gil([&] { return solve::from_lower(matrix); });
}

template <typename Index>
Matrix symmetrized(const Looked<Index>& starts, const Looked<Index>& columns,
                   const Looked<double>& values) {
  const solve::Csr<Index> matrix = viewed(starts, columns, values);
  return without_gil([&] { return solve::symmetrized(matrix); });
}

Matrix poisson(std::int64_t x, std::int64_t y, std::int64_t z) {
  if (x < 1 || y < 1 || z < 1) throw nb::value_error("poisson: at least one cell along each axis");
  return without_gil([&] { return solve::poisson({.cells = {z, y, x}}); });
}

Matrix g3like(std::uint64_t seed) {
  return without_gil([&] { return solve::g3like(seed); });
}

void bind_answers(nb::module_& m) {
  nb::class_<Solved>(m, "SolverInfo", "Result of an iteration.")
      .def_prop_ro("reason", [](const Solved& info) { return name_of(info.reason, kReasons); })
      .def_ro("iterations", &solve::Info::iterations)
      .def_ro("residual", &solve::Info::residual, "||b - A x|| / ||b|| in fp64.")
      .def_ro("solved_residual", &solve::Info::solved_residual,
              "That of b less its mean, where a nullspace is taken out.")
      .def_prop_ro("precision",
                   [](const Solved& info) { return name_of(info.precision, kPrecisions); })
      .def_ro("seconds", &solve::Info::seconds)
      .def_ro("fp64_updates", &solve::Info::fp64_updates)
      .def_prop_ro(
          "residuals", [](const Solved& info) { return nb::tuple(nb::cast(info.residuals)); },
          nb::sig("def residuals(self) -> tuple[float, ...]"),
          "As estimated after each iteration.");
  nb::class_<solve::SetupSummary>(m, "SolverSetup", "Statistics of the set-up; see solver.h.")
      .def_ro("blocks", &solve::SetupSummary::blocks)
      .def_ro("block_rows", &solve::SetupSummary::block_rows)
      .def_ro("colours", &solve::SetupSummary::colours)
      .def_ro("levels", &solve::SetupSummary::levels)
      .def_ro("relax", &solve::SetupSummary::relax)
      .def_ro("shift", &solve::SetupSummary::shift)
      .def_ro("eisenstat", &solve::SetupSummary::eisenstat)
      .def_ro("fill", &solve::SetupSummary::fill)
      .def_ro("bytes_per_iteration", &solve::SetupSummary::bytes_per_iteration)
      .def_ro("flops_per_iteration", &solve::SetupSummary::flops_per_iteration)
      .def_ro("memory_bytes", &solve::SetupSummary::memory_bytes)
      .def_ro("order_seconds", &solve::SetupSummary::order_seconds)
      .def_ro("factor_seconds", &solve::SetupSummary::factor_seconds)
      .def_ro("store_seconds", &solve::SetupSummary::store_seconds)
      .def_ro("coarse_seconds", &solve::SetupSummary::coarse_seconds);
}

void bind_one_solver(nb::module_& m) {
  nb::class_<solve::Settings>(m, "SolverSettings", "Options; see solver.h.")
      .def("__init__", &describe, nb::kw_only(), nb::arg("block_rows") = 0, nb::arg("colours") = 0,
           nb::arg("relax") = -1.0, nb::arg("precision") = "auto", nb::arg("coarse") = "auto",
           nb::arg("nullspace") = "none", nb::arg("threads") = 0);
  nb::class_<Solver>(m, "Solver", "A factored matrix; its arrays are not copied.")
      .def("__init__", &make<std::int32_t>, nb::arg("starts").noconvert(),
           nb::arg("columns").noconvert(), nb::arg("values").noconvert(), nb::arg("settings"))
      .def("__init__", &make<std::int64_t>, nb::arg("starts").noconvert(),
           nb::arg("columns").noconvert(), nb::arg("values").noconvert(), nb::arg("settings"),
           "Raises SolveError if the matrix is not suitable.")
      .def_prop_ro("setup", &Solver::setup, nb::rv_policy::reference_internal)
      .def(
          "solve", &solved, nb::arg("b").noconvert(), nb::arg("x").noconvert(), nb::arg("rtol"),
          nb::arg("atol"), nb::arg("max_iterations"), nb::arg("callback").none(),
          nb::sig("def solve(self, b: numpy.typing.NDArray[numpy.float64], "
                  "x: numpy.typing.NDArray[numpy.float64], rtol: float, atol: float, "
                  "max_iterations: int, callback: collections.abc.Callable[[int, float], object] | "
                  "None) -> SolverInfo"),
          "x: initial guess, overwritten by the solution. Not for several threads at once.")
      .def("precondition", &precondition, nb::arg("r").noconvert(), nb::arg("z").noconvert(),
           "z = M^-1 r.");
}

template <typename Index>
void bind_triangles(nb::module_& m) {
  m.def("from_lower", &from_lower<Index>, nb::arg("starts").noconvert(),
        nb::arg("columns").noconvert(), nb::arg("values").noconvert(),
        "The symmetric matrix of this lower triangle. Raises SolveError if it is no matrix.");
  m.def("symmetrized", &symmetrized<Index>, nb::arg("starts").noconvert(),
        nb::arg("columns").noconvert(), nb::arg("values").noconvert(),
        "(A + A') / 2. Raises SolveError if it is no matrix.");
}

void bind_matrices(nb::module_& m) {
  nb::class_<Matrix>(m, "Matrix", "Compressed sparse rows; its arrays keep it alive.")
      .def_prop_ro("starts", &array_of<&Matrix::starts>)
      .def_prop_ro("columns", &array_of<&Matrix::columns>)
      .def_prop_ro("values", &array_of<&Matrix::values>);
  m.def("parse_matrix_market", &parsed, nb::arg("text"), nb::arg("threads") = 0,
        nb::sig("def parse_matrix_market(text: typing_extensions.Buffer, threads: int = 0) -> "
                "Matrix"),
        "Reads an uncompressed Matrix Market file. Raises SolveError with the line if it is "
        "invalid.");
  bind_triangles<std::int32_t>(m);
  bind_triangles<std::int64_t>(m);
  m.def("poisson", &poisson, nb::arg("x"), nb::arg("y"), nb::arg("z"),
        "The 7-point Laplacian, 6 and -1, with zero Dirichlet boundary; x varies fastest.");
  m.def("g3like", &g3like, nb::arg("seed"),
        "A power grid of 1 585 478 nodes; the same for the same seed.");
}

}  // namespace

void bind_solver(nb::module_& m) {
  bind_answers(m);
  bind_one_solver(m);
  bind_matrices(m);
}
