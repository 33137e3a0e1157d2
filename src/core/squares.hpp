// How much the rows of a table vary.
#pragma once

#include "unshuffle/core/types.hpp"

namespace unshuffle {

/// Σ (value - mean of its column)², over all columns.
[[nodiscard]] inline double squares_about_mean(const Matrix& values) {
  return (values.rowwise() - values.colwise().mean()).squaredNorm();
}

}  // namespace unshuffle
