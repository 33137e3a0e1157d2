// Noise of several responses with a covariance of its own: models whose residuals are those of another, transformed.
#pragma once

#include <memory>

#include "unshuffle/families/noise_covariance.hpp"
#include "unshuffle/model/model.hpp"

namespace unshuffle {

/// The shape of the noise of several responses: residuals r have noise of one variance in T r, T lower triangular with
/// determinant one. Its parameters τ are the logarithms of all diagonal entries but the last, then the entries below
/// the diagonal, column by column.
class NoiseShape {
 public:
  NoiseShape(NoiseCovariance kind, Index outputs);

  [[nodiscard]] Index parameters() const;
  [[nodiscard]] Matrix transform(const VectorRef& tau) const;  ///< T; of no parameters, as of zeros, the identity.
  /// gradient += ∂<slope, T>/∂τ.
  void pull_back(const VectorRef& tau, const Matrix& slope, Eigen::Ref<Vector> gradient) const;

 private:
  NoiseCovariance kind_;
  Index outputs_;
};

/// A problem and a model of parameters (w, τ) whose residuals are T(y - f): responses stay, and
///   f' = (y + T(g(x) - y)) + T h(z),
/// so that every backend finds the distances of transformed residuals, and their derivatives in τ.
struct ShapedProblem {
  std::shared_ptr<const Problem> problem;  ///< The responses are columns of x as well.
  std::shared_ptr<const Model> model;
};
[[nodiscard]] ShapedProblem shaped(const Problem& problem, const Model& bound, const NoiseShape& shape);

}  // namespace unshuffle
