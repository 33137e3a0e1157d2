// Changed assumptions behind an answer.
#pragma once

#include <string>

#include "unshuffle/core/export.hpp"
#include "unshuffle/core/types.hpp"

namespace unshuffle UNSHUFFLE_EXPORT {

/// The effect of a changed assumption on the answer.
struct WhatIf {
  std::string assumption;  ///< The changed assumption: "the noise is skewed to the right".
  Vector shift;            ///< How far the parameters would move.
  bool ruled_out = false;  ///< The data would have shown it.
};

}  // namespace unshuffle
