// Optional parts of the program, each a separate module.
//
// They are loaded on first use instead of being linked: libtorch and OpenCV take half a second to load, which a
// regression should not pay for, and MPI is useful only with several processes.
#pragma once

#include <string>
#include <vector>

#include "unshuffle/core/export.hpp"

namespace unshuffle UNSHUFFLE_EXPORT {

struct Component {
  std::string name;     ///< As `unshuffle info` shows it.
  std::string module;   ///< File name.
  std::string purpose;  ///< What needs it.
  std::string remedy;   ///< What to install and how to build.
};

extern const Component torch_component;
extern const Component opencv_component;
extern const Component mpi_component;

/// Path of the module; empty when it was not built.
[[nodiscard]] std::string find_module(const Component& component);

/// A function of the module. Throws InvalidInput naming the component and the remedy when it is missing, SystemFailure
/// when it cannot be loaded or belongs to another version.
[[nodiscard]] void* load_function(const Component& component, const char* function);

}  // namespace unshuffle
