// S x = b for a symmetric S given only by its products.
#pragma once

#include <cmath>

#include "unshuffle/core/types.hpp"

namespace unshuffle::transport {

struct Iterated {
  Vector x;
  bool reached;  ///< The residual asked for.
};

struct Patience {
  double share;  ///< Ends when Σ|b - S x| is this share of Σ|b|.
  Index most;    ///< Products.
  double least_progress =
      0;  ///< Gives up when a quarter of them brought log Σ|b - S x| less than this share of its way.
};

/// Conjugate gradients, preconditioned by `approximately`, an approximate inverse of S. S may have null vectors if b is
/// orthogonal to them. Each iterate is closer to the solution than the one before.
template <class Product, class Inverse>
[[nodiscard]] Iterated conjugate_gradients(const Product& times, const Inverse& approximately, const Vector& b,
                                           const Patience& patience) {
  Vector x = Vector::Zero(b.size()), left = b;
  const double first = b.lpNorm<1>(), goal = patience.share * first;
  double size = first;
  if (!(size > goal)) return {std::move(x), true};
  Vector direction = approximately(left);
  double now = left.dot(direction);
  for (Index k = 0; k < patience.most; ++k) {
    const Vector product = times(direction);
    const double curvature = direction.dot(product);
    if (!(curvature > 0)) break;  // dominated by rounding
    x += (now / curvature) * direction;
    left -= (now / curvature) * product;
    size = left.lpNorm<1>();
    if (!(size > goal)) break;
    if (k == patience.most / 4 && std::log(size / first) > patience.least_progress * std::log(patience.share)) break;
    const Vector towards = approximately(left);
    const double next = left.dot(towards);
    direction = towards + (next / now) * direction;
    now = next;
  }
  return {std::move(x), size <= goal};
}

}  // namespace unshuffle::transport
