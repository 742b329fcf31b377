#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

// A name as the file system has it, as bytes; in Python a str that os.fsencode gives them back
// from.
struct FileName {
  std::string bytes;
};

inline std::vector<std::string> bytes_of(std::vector<FileName> names) {
  std::vector<std::string> all;
  all.reserve(names.size());
  for (FileName& name : names) all.push_back(std::move(name.bytes));
  return all;
}

template <>
struct nanobind::detail::type_caster<FileName> {
  NB_TYPE_CASTER(FileName, const_name("str"))

  bool from_python(handle source, std::uint32_t, cleanup_list*) noexcept {
    PyObject* bytes = nullptr;
    char* data = nullptr;
    Py_ssize_t size = 0;
    // Bytes and paths would do as well, but a str is what is asked for.
    bool done = PyUnicode_Check(source.ptr()) &&
                PyUnicode_FSConverter(source.ptr(), static_cast<void*>(&bytes)) != 0 &&
                PyBytes_AsStringAndSize(bytes, &data, &size) == 0;
    if (done) value.bytes.assign(data, static_cast<std::size_t>(size));
    if (!done) PyErr_Clear();
    Py_XDECREF(bytes);
    return done;
  }

  static handle from_cpp(const FileName& name, rv_policy, cleanup_list*) noexcept {
    return PyUnicode_DecodeFSDefaultAndSize(name.bytes.data(),
                                            static_cast<Py_ssize_t>(name.bytes.size()));
  }
};
