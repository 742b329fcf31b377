#pragma once

#include <nanobind/nanobind.h>

void bind_cpu(nanobind::module_& m);
