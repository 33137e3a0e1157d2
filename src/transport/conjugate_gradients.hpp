// S x = b for a symmetric S that is known by its products only.
#pragma once

#include "unshuffle/core/types.hpp"

namespace unshuffle::transport {

/// Conjugate gradients, preconditioned by `approximately`, an inverse of something like S. S may have null vectors as
/// long as b has no part in them. What is reached within `most` products is returned: from zero on, every iterate leads
/// towards the solution.
template <class Product, class Inverse>
[[nodiscard]] Vector conjugate_gradients(const Product& times, const Inverse& approximately, const Vector& b,
                                         Index most) {
  constexpr double enough = 1e-14;  // of b; what rounding leaves is for the caller's refinement
  Vector x = Vector::Zero(b.size()), left = b;
  Vector direction = approximately(left);
  double now = left.dot(direction);
  const double goal = enough * b.norm();
  for (Index k = 0; k < most && left.norm() > goal; ++k) {
    const Vector product = times(direction);
    const double curvature = direction.dot(product);
    if (!(curvature > 0)) break;  // rounding has the word
    x += (now / curvature) * direction;
    left -= (now / curvature) * product;
    const Vector towards = approximately(left);
    const double next = left.dot(towards);
    direction = towards + (next / now) * direction;
    now = next;
  }
  return x;
}

}  // namespace unshuffle::transport
