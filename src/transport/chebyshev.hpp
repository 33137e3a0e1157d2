// Interpolation on [-1, 1] from Chebyshev points of the first kind.
#pragma once

#include <cmath>

#include "unshuffle/core/types.hpp"

namespace unshuffle::transport {

/// The points, ascending.
inline Vector chebyshev_points(int count) {
  Vector points(count);
  for (int k = 0; k < count; ++k) points[k] = -std::cos(M_PI * (k + 0.5) / count);
  return points;
}

/// Values at chebyshev_points(count) → coefficients of the Chebyshev series through them.
inline Matrix chebyshev_coefficients(int count) {
  const Vector points = chebyshev_points(count);
  Matrix transform(count, count);
  for (int degree = 0; degree < count; ++degree)
    for (int k = 0; k < count; ++k)
      transform(degree, k) = (degree == 0 ? 1.0 : 2.0) / count * std::cos(degree * std::acos(points[k]));
  return transform;
}

}  // namespace unshuffle::transport
