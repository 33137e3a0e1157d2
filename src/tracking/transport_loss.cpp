#include "tracking/transport_loss.hpp"

#include <cmath>

namespace unshuffle::tracking {

TransportLoss transport_loss(const Matrix& cost, const transport::SolverOptions& options) {
  const transport::Solution solution = transport::solve(cost, options);
  // Raising all costs by one raises <C,Γ*> by one, so the weights sum to one. If they do not, the adjoint system was
  // singular to working accuracy (a row at the edge of being dropped), and the plan itself, the gradient of the
  // entropic value, is used instead.
  const Matrix weights = solution.gradient();
  constexpr double largest = 10;
  const bool sound = std::abs(weights.sum() - 1) < 1e-3 && weights.cwiseAbs().sum() < largest;
  return {solution.transport_cost(), sound ? weights : solution.plan()};
}

transport::SolverOptions relaxed_marginals(double epsilon, double unmatched) {
  transport::SolverOptions options{.epsilon = epsilon, .relative = false};
  if (unmatched > 0) options.rows = options.columns = transport::Ball{.spread = unmatched / (1 - unmatched)};
  options.tolerance = 1e-7;
  return options;
}

}  // namespace unshuffle::tracking
