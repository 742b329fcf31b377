#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <span>

// The bytes of any object that lends them. To be made and destroyed with the GIL.
class Lent {
 public:
  // how: PyBUF_WRITABLE, where it is to be written.
  explicit Lent(nanobind::handle object, int how = PyBUF_SIMPLE) {
    if (PyObject_GetBuffer(object.ptr(), &view_, how) != 0) throw nanobind::python_error();
  }
  Lent(const Lent&) = delete;
  Lent& operator=(const Lent&) = delete;
  ~Lent() { PyBuffer_Release(&view_); }
  std::span<const std::byte> bytes() const {
    return {static_cast<const std::byte*>(view_.buf), static_cast<std::size_t>(view_.len)};
  }
  std::byte* writable() const { return static_cast<std::byte*>(view_.buf); }

 private:
  Py_buffer view_{};
};
