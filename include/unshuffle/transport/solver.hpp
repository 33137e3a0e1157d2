// The differentiable transport layer on its own: any cost matrix, any pair of marginal policies.
//
//   Γ* = argmin <C,Γ> + ε KL(Γ | μ⊗ν) + R₁(Γ1) + R₂(Γᵀ1)
//
// For equal weights and policies that fix the mass this is the paper's problem with H(Γ) = ΣΓ(log Γ - 1): the two
// differ by a constant. The cost is used as given, |·|² and not ½|·|² when it comes from a model.
//
//   const Solution solution = solve(cost, {.epsilon = 0.01});
//   use(solution.plan(), solution.transport_cost(), solution.gradient());
#pragma once

#include <memory>
#include <vector>

#include "unshuffle/core/export.hpp"
#include "unshuffle/core/types.hpp"
#include "unshuffle/transport/marginal.hpp"
#include "unshuffle/transport/solution.hpp"

namespace unshuffle UNSHUFFLE_EXPORT {
class Team;
}

namespace unshuffle {
namespace transport UNSHUFFLE_EXPORT {

struct SolverOptions {
  double epsilon = 1e-2;  ///< Smoothing. Smaller: nearer to a hard matching.
  bool relative = true;   ///< ε is relative to the largest |cost|; else in the unit of the cost.
  MarginalPolicy rows = Exact{};
  MarginalPolicy columns = Exact{};
  double tolerance = 1e-9;   ///< Largest accepted Σ|sums - demanded| over rows and columns, plan mass one.
  int max_iterations = 200;  ///< Newton steps at the final ε.
  bool warm_start = true;    ///< A Solver starts from its last solution when the sizes are the same.
  /// Processes that make identical calls and share one plan: each passes its share_of() the longer side's rows of the
  /// cost (of the caller's rows if both are equally long) and gets those of the plan. Weights of all rows must be
  /// given. Must outlive the solver and its solutions; null: this process alone.
  Team* team = nullptr;
};

/// Solves one problem. The cost is copied unless moved in. Weights default to equal ones; they are scaled to sum to
/// one. Rows of zero weight are accepted. Throws InvalidInput for invalid shapes, weights, costs or options.
[[nodiscard]] Solution solve(Matrix cost, const SolverOptions& options = {});
[[nodiscard]] Solution solve(Matrix cost, const VectorRef& row_weights, const VectorRef& column_weights,
                             const SolverOptions& options = {});

/// Many small problems, solved in parallel; solutions are in the order of the costs.
[[nodiscard]] std::vector<Solution> solve_batch(const std::vector<Matrix>& costs, const SolverOptions& options);

/// Solves a series of similar problems, each from the potentials of the one before. Not thread-safe.
class Solver {
 public:
  explicit Solver(SolverOptions options = {});
  ~Solver();
  Solver(Solver&&) noexcept;
  Solver& operator=(Solver&&) noexcept;

  /// As transport::solve().
  [[nodiscard]] Solution solve(Matrix cost, const VectorRef& row_weights = Vector(),
                               const VectorRef& column_weights = Vector());

  [[nodiscard]] const SolverOptions& options() const;
  void set_options(const SolverOptions& options);

 private:
  struct [[gnu::visibility("hidden")]] State;
  std::unique_ptr<State> state_;
};

/// Weights of `size` rows scaled to sum to one; equal ones when there are none. Throws InvalidInput naming them.
[[nodiscard]] Vector normalised_weights(const VectorRef& weights, Index size, const char* name);

}  // namespace unshuffle
}  // namespace unshuffle
