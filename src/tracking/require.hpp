// Options are refused by name, value and what was expected.
#pragma once

#include <fmt/format.h>

#include <string_view>

#include "unshuffle/error.hpp"

namespace unshuffle::tracking {

inline void require(bool holds, std::string_view option, double value, std::string_view expected) {
  if (!holds) throw InvalidInput(fmt::format("{} = {} must be {}", option, value, expected));
}

}  // namespace unshuffle::tracking
