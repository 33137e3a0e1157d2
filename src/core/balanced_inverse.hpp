// Inverses of symmetric matrices whose rows belong to quantities of any units.
#pragma once

#include <Eigen/QR>
#include <cmath>

#include "unshuffle/core/types.hpp"

namespace unshuffle {

/// The pseudo-inverse with every row and column first divided by the root of its diagonal entry: what is small only
/// because of its unit is not taken for nothing.
inline Matrix balanced_inverse(const Matrix& a) {
  const Vector scale = a.diagonal().unaryExpr([](double d) { return d != 0 ? 1 / std::sqrt(std::abs(d)) : 0.0; });
  const Matrix balanced = scale.asDiagonal() * a * scale.asDiagonal();
  return scale.asDiagonal() * balanced.completeOrthogonalDecomposition().pseudoInverse() * scale.asDiagonal();
}

}  // namespace unshuffle
