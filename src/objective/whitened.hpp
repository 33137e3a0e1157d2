// Responses in units of their noise: with A = L⁻¹ and Σ = LLᵀ the covariance of the noise, the squared distance of Ay
// and Af is what a pair costs, and ε = 2.
#pragma once

#include <memory>

#include "unshuffle/model/model.hpp"
#include "unshuffle/tables/problem.hpp"

namespace unshuffle {

/// A problem and a model of the same parameters.
struct WhitenedProblem {
  std::shared_ptr<const Problem> problem;  ///< With responses Ay,
  std::shared_ptr<const Model> model;      ///< and predictions Af.
};
[[nodiscard]] WhitenedProblem whitened(const Problem& problem, std::shared_ptr<const Model> bound, const Matrix& a);

/// L⁻¹ of a covariance; throws InvalidInput for one that is not positive definite.
[[nodiscard]] Matrix whitening(const Matrix& covariance);

}  // namespace unshuffle
