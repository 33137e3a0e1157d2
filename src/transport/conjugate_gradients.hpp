// S x = b for a symmetric S given only by its products.
#pragma once

#include "unshuffle/core/types.hpp"

namespace unshuffle::transport {

/// Conjugate gradients, preconditioned by `approximately`, an approximate inverse of S. S may have null vectors if b is
/// orthogonal to them. Returns the iterate after at most `most` products; each one is closer to the solution.
template <class Product, class Inverse>
[[nodiscard]] Vector conjugate_gradients(const Product& times, const Inverse& approximately, const Vector& b,
                                         Index most) {
  constexpr double enough = 1e-14;  // relative to b; the caller's refinement removes the rest
  Vector x = Vector::Zero(b.size()), left = b;
  Vector direction = approximately(left);
  double now = left.dot(direction);
  const double goal = enough * b.norm();
  for (Index k = 0; k < most && left.norm() > goal; ++k) {
    const Vector product = times(direction);
    const double curvature = direction.dot(product);
    if (!(curvature > 0)) break;  // dominated by rounding
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
