// The differentiable transport layer on its own: any cost matrix, any pair of marginal policies.
//
//   Γ* = argmin <C,Γ> + ε KL(Γ | μ⊗ν) + R₁(Γ1) + R₂(Γᵀ1)
//
// For equal weights and policies that fix the mass this is the paper's problem with H(Γ) = ΣΓ(log Γ - 1): the two
// differ by a constant. The cost is used as given, |·|² and not ½|·|² when it comes from a model.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "unshuffle/core/types.hpp"
#include "unshuffle/transport/marginal.hpp"

namespace unshuffle {
class Team;
}

namespace unshuffle::transport {

struct SolverOptions {
  double epsilon = 1e-2;  ///< Smoothing. Smaller: nearer to a hard matching.
  bool relative = true;   ///< ε is relative to the largest |cost|; else in the unit of the cost.
  MarginalPolicy rows = Exact{};
  MarginalPolicy columns = Exact{};
  double tolerance = 1e-9;   ///< Largest accepted Σ|sums - demanded| over rows and columns, plan mass one.
  int max_iterations = 200;  ///< Newton steps at the final ε.
  bool warm_start = true;    ///< Start from the last solution when the sizes are the same.
  /// Processes that make every call alike and share one plan: each gives its share_of() the longer side's rows of the
  /// cost (of the caller's rows where both are as long) and gets those of the plan. Weights must be given, of all rows.
  /// Must outlive the solver; none: this process alone.
  Team* team = nullptr;
};

struct Plan {
  Matrix coupling;                         ///< Γ, n×m.
  Vector row_potential, column_potential;  ///< In the unit of the cost: Γ_ij = μ_i ν_j exp((ξ_i + ζ_j - C_ij)/ε).
  Vector row_sums, column_sums;            ///< Of Γ.
  double value = 0;                        ///< <C,Γ> + ε Σ Γ(log(Γ/(μ⊗ν)) - 1) + R₁ + R₂.
  double transport_cost = 0;               ///< <C,Γ>.
  double epsilon = 0;                      ///< In the unit of the cost.
  double marginal_error = 0;
  std::vector<double> error_history;  ///< Marginal error before the first and after every step at the final ε.
  int sinkhorn_steps = 0, newton_steps = 0;
  bool converged = false;
  std::string message;  ///< Why not, when not converged.
};

class Solver {
 public:
  explicit Solver(SolverOptions options = {});
  ~Solver();
  Solver(Solver&&) noexcept;
  Solver& operator=(Solver&&) noexcept;

  /// Weights default to equal ones; they are scaled to sum to one. Rows of zero weight are accepted.
  /// Throws InvalidInput for shapes, weights or costs that make no sense.
  Plan solve(const MatrixRef& cost, const VectorRef& row_weights = Vector(),
             const VectorRef& column_weights = Vector());

  /// dF/dC of the transport cost F = <C,Γ*(C)> at the last solve, differentiated through Γ* (one adjoint solve).
  /// For Objective::entropic it is Γ itself.
  [[nodiscard]] Matrix weights(const Plan& plan, Objective objective = Objective::transport);

  /// dL/dC of any L that depends on the plan of the last solve, given cotangent = dL/dΓ (one adjoint solve). ε counts
  /// as a constant.
  [[nodiscard]] Matrix pull_back(const Plan& plan, const MatrixRef& cotangent);

  [[nodiscard]] const SolverOptions& options() const;
  void set_options(const SolverOptions& options);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Weights of `size` rows scaled to sum to one; equal ones when there are none. Throws InvalidInput naming them.
[[nodiscard]] Vector normalised_weights(const VectorRef& weights, Index size, const char* name);

/// Many small problems, solved in parallel; plans are in the order of the costs.
[[nodiscard]] std::vector<Plan> solve_batch(const std::vector<Matrix>& costs, const SolverOptions& options);

}  // namespace unshuffle::transport
