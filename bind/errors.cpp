// What the native core refuses, as flowos.model names it.

#include "base/errors.h"

#include <exception>

#include "bind.h"
#include "matrix/error.h"

namespace nb = nanobind;

namespace {

// The text may name a file, whose name may be any bytes.
void raise(const char* name, const std::exception& error) {
  const nb::object text = nb::steal(PyUnicode_DecodeFSDefault(error.what()));
  PyErr_SetObject(nb::module_::import_("flowos.model").attr(name).ptr(), text.ptr());
}

// What is thrown in here is offered to the other translators.
void translate(const std::exception_ptr& thrown, void* /*payload*/) {
  try {
    std::rethrow_exception(thrown);
  } catch (const flowos::feed::SampleError& error) {
    raise("SampleError", error);
  } catch (const flowos::feed::FeedError& error) {
    raise("FeedError", error);
  } catch (const flowos::solve::MatrixError& error) {
    raise("SolveError", error);
  }
}

}  // namespace

void bind_errors(nb::module_& /*m*/) { nb::register_exception_translator(&translate); }
