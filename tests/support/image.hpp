// The size of the pictures that videos made by the tests have.
#pragma once

#include "unshuffle/tracking/tracker.hpp"

namespace unshuffle::tracking {

inline constexpr Image image{640, 480};

}  // namespace unshuffle::tracking
