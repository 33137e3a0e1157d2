// The gradient of automatic differentiation through a fixed number of Sinkhorn iterations, converged or not
// (docs/mathematics.md §3.5). For comparison with the implicit gradient of Evaluator and transport::Solver.
#pragma once

#include "unshuffle/core/export.hpp"
#include "unshuffle/core/types.hpp"

namespace unshuffle UNSHUFFLE_EXPORT {

/// What the forward pass stores.
enum class Tape {
  stored,  ///< The softmax of every half step, 2·n·m numbers an iteration: what an automatic differentiator keeps.
  recomputed,  ///< Potentials only, n + m numbers an iteration; the softmax is recomputed in the backward pass.
};

struct UnrolledSinkhorn {
  double transport_cost = 0;  ///< <C, Γ> of the last iterate.
  Matrix weights;             ///< d<C, Γ>/dC through all iterations.
  double marginal_error = 0;  ///< Σ|row sums - a| + Σ|column sums - b| of the last iterate.
};

/// `iterations` log-domain Sinkhorn iterations (rows, then columns) from zero potentials, and their exact derivative in
/// reverse. Weights are scaled to sum to one.
/// Throws InvalidInput for invalid shapes, weights, ε or iterations.
[[nodiscard]] UnrolledSinkhorn unrolled_sinkhorn(const MatrixRef& cost, const VectorRef& row_weights,
                                                 const VectorRef& column_weights, double epsilon, int iterations,
                                                 Tape tape = Tape::recomputed);

}  // namespace unshuffle
