// The transport cost of a frame and its gradient for training, safe where the adjoint system is singular.
#pragma once

#include "unshuffle/transport/solver.hpp"

namespace unshuffle::tracking {

struct TransportLoss {
  double value;    ///< <C, Γ*>.
  Matrix weights;  ///< Its derivative in C, through Γ*.
};

[[nodiscard]] TransportLoss transport_loss(const Matrix& cost, const transport::SolverOptions& options);

/// ε in the unit of the cost; a share of the rows and of the columns may stay unmatched, none when it is 0.
[[nodiscard]] transport::SolverOptions relaxed_marginals(double epsilon, double unmatched);

}  // namespace unshuffle::tracking
