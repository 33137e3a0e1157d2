// The module in parts, one function each.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

namespace unshuffle::python {

void bind_fit(nanobind::module_& module);
void bind_transport(nanobind::module_& module);
void bind_tables(nanobind::module_& module);
void bind_data(nanobind::module_& module);
void bind_tracking(nanobind::module_& module);

}  // namespace unshuffle::python
