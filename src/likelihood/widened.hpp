// A covariance with standard errors from elsewhere.
#pragma once

#include <algorithm>
#include <cmath>

#include "unshuffle/core/types.hpp"

namespace unshuffle {

/// Every standard error is at least this one; correlations stay. Errors that are not finite say nothing.
inline Matrix widened(const Matrix& covariance, const Vector& errors) {
  constexpr double enough = 100;  // an interval may have no end
  const Vector factor = Vector::NullaryExpr(errors.size(), [&](Index k) {
    const double times = errors(k) / std::sqrt(covariance(k, k));
    return times > 1 ? std::min(times, enough) : 1.0;
  });
  return factor.asDiagonal() * covariance * factor.asDiagonal();
}

}  // namespace unshuffle
