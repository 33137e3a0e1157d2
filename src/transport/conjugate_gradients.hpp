// S x = b for a symmetric S given only by its products.
#pragma once

#include "unshuffle/core/types.hpp"

namespace unshuffle::transport {

struct Iterated {
  Vector x;
  bool reached;  ///< The residual asked for.
};

/// Conjugate gradients, preconditioned by `approximately`, an approximate inverse of S. S may have null vectors if b is
/// orthogonal to them. Ends when Σ|b - S x| is `share` of Σ|b|, or after `most` products; each iterate is closer to the
/// solution than the one before.
template <class Product, class Inverse>
[[nodiscard]] Iterated conjugate_gradients(const Product& times, const Inverse& approximately, const Vector& b,
                                           double share, Index most) {
  Vector x = Vector::Zero(b.size()), left = b;
  const double goal = share * b.lpNorm<1>();
  double size = left.lpNorm<1>();
  if (!(size > goal)) return {std::move(x), true};
  Vector direction = approximately(left);
  double now = left.dot(direction);
  for (Index k = 0; k < most; ++k) {
    const Vector product = times(direction);
    const double curvature = direction.dot(product);
    if (!(curvature > 0)) break;  // dominated by rounding
    x += (now / curvature) * direction;
    left -= (now / curvature) * product;
    size = left.lpNorm<1>();
    if (!(size > goal)) break;
    const Vector towards = approximately(left);
    const double next = left.dot(towards);
    direction = towards + (next / now) * direction;
    now = next;
  }
  return {std::move(x), size <= goal};
}

}  // namespace unshuffle::transport
