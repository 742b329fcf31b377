// Calls a function of a person's library by the C ABI, without code made for each signature.
//
// A caller puts integers and pointers into one kind of register, floating-point numbers into
// another, and what is left, of both kinds and in order, on the stack, 8 bytes each. A function
// takes from there what it declares and does not see the rest, so that one call with all registers
// fits all.

#include <Python.h>
#include <cxxabi.h>  // NOLINT(misc-include-cleaner): what is used of it lies in bits/
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bind.h"
#include "gil.h"

namespace nb = nanobind;

namespace {

#if defined(__x86_64__)
constexpr std::size_t kIntegers = 6;
#else  // AArch64; others are refused where a task is made
constexpr std::size_t kIntegers = 8;
#endif
constexpr std::size_t kFloats = 8;
constexpr std::size_t kMost = 32;  // arguments

struct Registers {
  std::array<std::int64_t, kIntegers> integers{};
  std::array<double, kFloats> floats{};
  std::array<std::int64_t, kMost> stack{};
  std::size_t used_integers = 0, used_floats = 0, used_stack = 0;

  void add(std::int64_t value) {
    if (used_integers < kIntegers) {
      integers[used_integers++] = value;
    } else {
      stack[used_stack++] = value;
    }
  }
  void add(const void* pointer) { add(std::bit_cast<std::int64_t>(pointer)); }
  void add_float(std::int64_t bits) {
    if (used_floats < kFloats) {
      floats[used_floats++] = std::bit_cast<double>(bits);
    } else {
      stack[used_stack++] = bits;
    }
  }
};

template <typename T, std::size_t>
using Each = T;

template <std::size_t... I, std::size_t... F, std::size_t... S>
int call_with(void* entry, const Registers& at, std::index_sequence<I...> /*integers*/,
              std::index_sequence<F...> /*floats*/, std::index_sequence<S...> /*stack*/) {
  using Function = int (*)(Each<std::int64_t, I>..., Each<double, F>..., Each<std::int64_t, S>...);
  return reinterpret_cast<Function>(entry)(at.integers[I]..., at.floats[F]..., at.stack[S]...);
}

template <std::size_t kStack>
int call_with_stack(void* entry, const Registers& at) {
  return call_with(entry, at, std::make_index_sequence<kIntegers>{},
                   std::make_index_sequence<kFloats>{}, std::make_index_sequence<kStack>{});
}

int call(void* entry, const Registers& at) {
  if (at.used_stack == 0) return call_with_stack<0>(entry, at);
  if (at.used_stack <= 8) return call_with_stack<8>(entry, at);
  return call_with_stack<kMost>(entry, at);
}

// An extent: the axis of an input's array, the value of an input (axis -1), or a number (input -1).
using Extent = std::pair<int, std::int64_t>;

struct Output {
  nb::object dtype;
  std::vector<Extent> shape;
  bool is_scalar;
};

struct Plan {
  void* entry;
  std::string inputs;  // of each: i integer, d double, f float, a array
  std::vector<std::pair<Extent, Extent>> equal;
  std::vector<Extent> lengths;
  std::vector<Output> outputs;
  nb::object empty, contiguous, refuse, failed;
};

using Values = std::span<PyObject* const>;

// Arrays of one call, let go with it.
struct Views {
  std::array<Py_buffer, kMost> each;
  std::size_t count = 0;

  Views() {}  // NOLINT: filled as far as count says
  Views(const Views&) = delete;
  Views& operator=(const Views&) = delete;
  ~Views() {
    while (count > 0) PyBuffer_Release(&each[--count]);
  }
  const Py_buffer& open(PyObject* array, int how) {
    if (PyObject_GetBuffer(array, &each[count], how) != 0) throw nb::python_error();
    return each[count++];
  }
};

struct Arguments {
  Registers registers;
  Views views;
  std::array<const Py_buffer*, kMost> arrays{};
  std::array<std::int64_t, kMost> integers{};

  std::int64_t size(const Extent& extent) const {
    const auto [input, axis] = extent;
    if (input < 0) return axis;
    return axis < 0 ? integers[static_cast<std::size_t>(input)]
                    : arrays[static_cast<std::size_t>(input)]->shape[axis];
  }
};

std::int64_t as_integer(PyObject* value) {
  const nb::object number = nb::steal(PyNumber_Index(value));
  if (!number.is_valid()) {  // a bool of NumPy is no index
    PyErr_Clear();
    const int truth = PyObject_IsTrue(value);
    if (truth < 0) throw nb::python_error();
    return truth;
  }
  return static_cast<std::int64_t>(PyLong_AsUnsignedLongLongMask(number.ptr()));
}

double as_double(PyObject* value) {
  const double number = PyFloat_AsDouble(value);
  if (number == -1.0 && PyErr_Occurred() != nullptr) throw nb::python_error();
  return number;
}

const Py_buffer* open_input(const Plan& plan, Views& views, PyObject* array) {
  if (PyObject_GetBuffer(array, &views.each[views.count], PyBUF_C_CONTIGUOUS) == 0) {
    return &views.each[views.count++];
  }
  PyErr_Clear();
  const nb::object copy = plan.contiguous(nb::handle(array));
  return &views.open(copy.ptr(), PyBUF_C_CONTIGUOUS);  // it keeps the copy
}

void add_input(const Plan& plan, Arguments& to, std::size_t i, PyObject* value) {
  switch (plan.inputs[i]) {
    case 'a':
      to.arrays[i] = open_input(plan, to.views, value);
      to.registers.add(to.arrays[i]->buf);
      break;
    case 'd':
      to.registers.add_float(std::bit_cast<std::int64_t>(as_double(value)));
      break;
    case 'f':
      to.registers.add_float(std::bit_cast<std::int32_t>(static_cast<float>(as_double(value))));
      break;
    default:
      to.integers[i] = PyLong_CheckExact(value)
                           ? static_cast<std::int64_t>(PyLong_AsUnsignedLongLongMask(value))
                           : as_integer(value);
      to.registers.add(to.integers[i]);
  }
}

nb::object new_output(const Plan& plan, const Arguments& arguments, const Output& output) {
  const nb::object shape = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(output.shape.size())));
  for (std::size_t axis = 0; axis < output.shape.size(); ++axis) {
    PyTuple_SetItem(shape.ptr(), static_cast<Py_ssize_t>(axis),
                    PyLong_FromLongLong(arguments.size(output.shape[axis])));
  }
  return plan.empty(shape, output.dtype);
}

// Raises what Python has to say of extents that disagree.
void check_extents(const Plan& plan, const Arguments& arguments, Values values) {
  for (const auto& [one, other] : plan.equal) {
    if (arguments.size(one) == arguments.size(other) && arguments.size(one) >= 0) continue;
    const nb::object all = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(values.size())));
    for (std::size_t i = 0; i < values.size(); ++i) {
      PyTuple_SetItem(all.ptr(), static_cast<Py_ssize_t>(i), Py_NewRef(values[i]));
    }
    plan.refuse(all);
    throw nb::value_error("extents disagree");
  }
}

// What the body returns. Raises RuntimeError if it throws, as C++ may.
int call_body(const Plan& plan, const Arguments& arguments) {
  std::string thrown;
  {
    const GilRelease released;
    try {
      return call(plan.entry, arguments.registers);
    } catch (const abi::__forced_unwind&) {  // its thread ends
      throw;
    } catch (const std::exception& error) {
      thrown = error.what();
    } catch (...) {
      thrown = "not a std::exception";
    }
  }
  PyErr_Format(PyExc_RuntimeError, "the body threw a C++ exception: %s", thrown.c_str());
  throw nb::python_error();
}

nb::object run(const Plan& plan, Values values) {
  if (values.size() != plan.inputs.size()) throw nb::type_error("another number of values");
  Arguments arguments;
  for (std::size_t i = 0; i < values.size(); ++i) add_input(plan, arguments, i, values[i]);
  check_extents(plan, arguments, values);
  for (const Extent& length : plan.lengths) arguments.registers.add(arguments.size(length));
  std::array<nb::object, kMost> outputs;
  for (std::size_t i = 0; i < plan.outputs.size(); ++i) {
    outputs[i] = new_output(plan, arguments, plan.outputs[i]);
    arguments.registers.add(arguments.views.open(outputs[i].ptr(), PyBUF_WRITABLE).buf);
  }
  if (const int code = call_body(plan, arguments); code != 0) plan.failed(code);
  for (std::size_t i = 0; i < plan.outputs.size(); ++i) {
    if (plan.outputs[i].is_scalar) outputs[i] = outputs[i].attr("item")();
  }
  if (plan.outputs.size() == 1) return outputs[0];
  nb::object all = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(plan.outputs.size())));
  for (std::size_t i = 0; i < plan.outputs.size(); ++i) {
    PyTuple_SetItem(all.ptr(), static_cast<Py_ssize_t>(i), outputs[i].release().ptr());
  }
  return all;
}

constexpr const char* kPlan = "flowos.native_call";

PyObject* run_plan(PyObject* self, PyObject* const* values, Py_ssize_t count) {
  const auto* plan = static_cast<const Plan*>(PyCapsule_GetPointer(self, kPlan));
  try {
    return run(*plan, std::span(values, static_cast<std::size_t>(count))).release().ptr();
  } catch (nb::python_error& error) {
    error.restore();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_TypeError, error.what());
  }
  return nullptr;
}

void forget(PyObject* capsule) {
  const std::unique_ptr<Plan> plan(static_cast<Plan*>(PyCapsule_GetPointer(capsule, kPlan)));
}

// A function of C, which takes its values from where they lie: as one of nanobind it would put them
// into a tuple first.
nb::object native_call(std::uintptr_t entry, std::string inputs,
                       std::vector<std::pair<Extent, Extent>> equal, std::vector<Extent> lengths,
                       const std::vector<std::pair<nb::object, std::vector<Extent>>>& outputs,
                       nb::object refuse, nb::object failed) {
  static PyMethodDef method = {"native_call", nullptr, METH_FASTCALL, nullptr};
  method.ml_meth = reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&run_plan));
  if (inputs.size() + lengths.size() + outputs.size() > kMost) {
    throw nb::value_error("too many arguments");
  }
  const nb::module_ numpy = nb::module_::import_("numpy");
  auto plan = std::make_unique<Plan>();
  plan->entry = std::bit_cast<void*>(entry);  // an address, as ctypes has it
  plan->inputs = std::move(inputs);
  plan->equal = std::move(equal);
  plan->lengths = std::move(lengths);
  for (const auto& [dtype, shape] : outputs) {
    plan->outputs.push_back({numpy.attr("dtype")(dtype), shape, shape.empty()});
  }
  plan->empty = numpy.attr("empty");
  plan->contiguous = numpy.attr("ascontiguousarray");
  plan->refuse = std::move(refuse);
  plan->failed = std::move(failed);
  const nb::object capsule = nb::steal(PyCapsule_New(plan.get(), kPlan, &forget));
  if (!capsule.is_valid()) throw nb::python_error();
  plan.release();  // NOLINT: the capsule has it
  return nb::steal(PyCFunction_NewEx(&method, capsule.ptr(), nullptr));
}

}  // namespace

void bind_native_call(nb::module_& m) {
  m.attr("native_call_arguments") = kMost;
  m.def("native_call", &native_call, nb::arg("entry"), nb::arg("inputs"), nb::arg("equal"),
        nb::arg("lengths"), nb::arg("outputs"), nb::arg("refuse"), nb::arg("failed"),
        "A function that calls what lies at the address `entry` with the values of its inputs, and "
        "returns its outputs. inputs: of each a letter, i(nteger), d(ouble), f(loat), a(rray). An "
        "extent is (input, axis), (input, -1) for its value, or (-1, size). equal: pairs of "
        "extents; where two differ or are below 0, refuse(values) is called, which raises. "
        "lengths: extents that are passed. outputs: dtype and shape of each, () for a scalar. "
        "failed(code) is called where it does not return 0, and raises.");
}
