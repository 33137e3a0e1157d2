// FitOptions with words where C++ has enumerations.
#pragma once

#include <nanobind/nanobind.h>

namespace unshuffle::python {

void bind_options(nanobind::module_& module);

}  // namespace unshuffle::python
