// How far out a χ² statistic lies.
#pragma once

#include <cmath>

namespace unshuffle {

/// P(χ²_k > x) by Wilson & Hilferty (1931).
inline double chi_squared_tail(double x, double k) {
  const double a = 2 / (9 * k);
  const double normal = (std::cbrt(x / k) - (1 - a)) / std::sqrt(a);
  return 0.5 * std::erfc(normal / std::sqrt(2.0));
}

}  // namespace unshuffle
