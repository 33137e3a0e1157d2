// A noise law estimated from residuals instead of assumed (docs/mathematics.md §8.1).
//
// Residuals are u·exp(b f̃), where f̃ is the prediction in standard deviations, so that the noise may grow or shrink with
// it, and u has a density g by a weighted kernel estimate on a grid. A little of a heavy-tailed density is mixed in:
// rows far out are then improbable, never impossible.
#pragma once

#include "unshuffle/core/types.hpp"

namespace unshuffle {

class NoiseLaw {
 public:
  /// Of residuals of any scale, one output, with weights; b = 0.
  NoiseLaw(const Vector& residual, const Vector& weights);

  /// Re-estimates from these; b takes one Newton step on the normal pseudo-likelihood of the scale.
  void renew(const Vector& residual, const Vector& level, const Vector& weights);

  /// log density of each residual at its level f̃.
  [[nodiscard]] Vector log_at(const Vector& residual, const Vector& level) const;
  /// Its derivative in the residual.
  [[nodiscard]] Vector slope_at(const Vector& residual, const Vector& level) const;

 private:
  void estimate(const Vector& u, const Vector& weights);
  [[nodiscard]] double log_density(double u) const;

  double growth_ = 0;  // b
  double low_ = 0, step_ = 1;
  Vector logs_;
};

/// Predictions in standard deviations, clipped at 2.5: rows beyond have the variance of rows there.
[[nodiscard]] Vector levels_of(const Vector& predictions);

}  // namespace unshuffle
