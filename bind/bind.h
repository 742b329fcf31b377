#pragma once

#include <nanobind/nanobind.h>

void bind_cache(nanobind::module_& m);
void bind_catalog(nanobind::module_& m);
void bind_cpu(nanobind::module_& m);
void bind_decoder(nanobind::module_& m);
void bind_errors(nanobind::module_& m);
void bind_feeder(nanobind::module_& m);
void bind_native_call(nanobind::module_& m);
void bind_solver(nanobind::module_& m);
