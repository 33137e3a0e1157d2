// Linked rows, or rows treated as linked: f(x_i, z_i; w) against y_i, and least squares on them.
#pragma once

#include <vector>

#include "core/random.hpp"
#include "unshuffle/model/model.hpp"
#include "unshuffle/tables/problem.hpp"

namespace unshuffle {

/// Tables of equally many rows, already through basis().
struct LinkedRows {
  Matrix x;
  Matrix z;
  Matrix y;

  [[nodiscard]] Index size() const { return y.rows(); }
};

/// Row responses[k] of D1 is linked to row features[k] of D2.
struct Links {
  std::vector<Index> responses;
  std::vector<Index> features;

  [[nodiscard]] Index size() const { return static_cast<Index>(responses.size()); }
  bool operator==(const Links&) const = default;
};

/// Row i beside row i where both may match, for as many rows as both tables have; known pairs as they are known.
[[nodiscard]] Links links_in_order(const Problem& problem);

/// Pairs of rows drawn with replacement, whatever belongs together.
[[nodiscard]] Links links_at_random(const Problem& problem, Index count, Stream stream);

/// Row response_rows[k] of D1 beside row feature_rows[k] of D2.
[[nodiscard]] LinkedRows link(const Problem& problem, const Model& bound, const std::vector<Index>& response_rows,
                              const std::vector<Index>& feature_rows);

/// The given rows of `rows`.
[[nodiscard]] LinkedRows subset(const LinkedRows& rows, const std::vector<Index>& chosen);

/// y - f, N×o.
[[nodiscard]] Matrix residuals(const Model& bound, const LinkedRows& rows, const VectorRef& w);

/// ∂f(x_i, z_i; w)/∂w of every row, output by output below one another: (N·o)×p.
[[nodiscard]] Matrix linked_jacobian(const Model& bound, const LinkedRows& rows, const VectorRef& w);

/// Σ_i vᵢJᵢᵀJᵢ, Σ_i vᵢJᵢᵀrᵢ and Σ_i vᵢ|rᵢ|² with row weights v (one each when empty).
struct NormalEquations {
  Matrix matrix;
  Vector right;
  double squares = 0;
};
[[nodiscard]] NormalEquations normal_equations(const Model& bound, const LinkedRows& rows, const VectorRef& w,
                                               const Vector& row_weights = {});

struct LeastSquares {
  Vector parameters;
  double squares = 0;  ///< Weighted sum of squared residuals.
  Matrix matrix;       ///< Σ vJᵀJ at the solution.
};

/// The fewest linked rows with that many outputs that determine that many parameters.
[[nodiscard]] constexpr Index rows_that_determine(Index parameters, Index outputs) {
  return (parameters + outputs - 1) / outputs;
}

/// Levenberg-Marquardt from `start`; a model linear in w needs one step and a second to remove rounding.
[[nodiscard]] LeastSquares least_squares(const Model& bound, const LinkedRows& rows, const VectorRef& start,
                                         const Vector& row_weights = {}, int max_steps = 50);

}  // namespace unshuffle
