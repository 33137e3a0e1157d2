// The gradient an automatic differentiator would find: through a fixed number of Sinkhorn iterations, converged or not.
// It is here to be compared with the implicit gradient of Evaluator and transport::Solver, which need no iterate.
#pragma once

#include "unshuffle/types.hpp"

namespace unshuffle {

struct UnrolledSinkhorn {
  double transport_cost = 0;  ///< <C, Γ> of the last iterate.
  Matrix weights;             ///< d<C, Γ>/dC through all iterations.
  double marginal_error = 0;  ///< Σ|row sums - a| + Σ|column sums - b| of the last iterate.
};

/// `iterations` log-domain Sinkhorn iterations (rows, then columns) from zero potentials, and their exact derivative in
/// reverse. Weights are scaled to sum to one. Keeps the potentials of all iterations, (n + m)·iterations numbers, and
/// recomputes the rest; time is twice that of the forward iterations.
/// Throws InvalidInput for shapes, weights, ε or iterations that make no sense.
[[nodiscard]] UnrolledSinkhorn unrolled_sinkhorn(const MatrixRef& cost, const VectorRef& row_weights,
                                                 const VectorRef& column_weights, double epsilon, int iterations);

}  // namespace unshuffle
