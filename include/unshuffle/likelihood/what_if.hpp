// What an answer takes for granted, made otherwise.
#pragma once

#include <string>

#include "unshuffle/core/export.hpp"
#include "unshuffle/core/types.hpp"

namespace UNSHUFFLE_EXPORT unshuffle {

/// What would become of the answer if an assumption were otherwise.
struct WhatIf {
  std::string assumption;  ///< What would be otherwise: "the noise is skewed to the right".
  Vector shift;            ///< How far the parameters would move.
  bool ruled_out = false;  ///< The data would have shown it.
};

}  // namespace unshuffle
