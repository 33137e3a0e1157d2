// Reading files.
#pragma once

#include <string>

#include "unshuffle/core/export.hpp"

namespace unshuffle UNSHUFFLE_EXPORT {

/// A whole file as bytes; BadData when it cannot be opened, SystemFailure when reading fails.
[[nodiscard]] std::string read_file(const std::string& path);

/// Everything that standard input has left; BadData if that is nothing.
[[nodiscard]] std::string read_standard_input();

}  // namespace unshuffle
