// Inverses of symmetric matrices whose rows are in arbitrary units.
#pragma once

#include <Eigen/QR>
#include <cmath>

#include "unshuffle/core/types.hpp"

namespace unshuffle {

/// The pseudo-inverse, with every row and column first scaled by the root of its diagonal entry, so that an entry that
/// is small only because of its unit is not treated as zero.
inline Matrix balanced_inverse(const Matrix& a) {
  const Vector scale = a.diagonal().unaryExpr([](double d) { return d != 0 ? 1 / std::sqrt(std::abs(d)) : 0.0; });
  const Matrix balanced = scale.asDiagonal() * a * scale.asDiagonal();
  return scale.asDiagonal() * balanced.completeOrthogonalDecomposition().pseudoInverse() * scale.asDiagonal();
}

}  // namespace unshuffle
