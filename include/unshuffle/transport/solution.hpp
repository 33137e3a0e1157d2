// The solution of a transport problem and its derivatives.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "unshuffle/core/export.hpp"
#include "unshuffle/core/types.hpp"

namespace unshuffle {
namespace transport UNSHUFFLE_EXPORT {

/// A plan with its value, potentials and derivatives. It owns all it needs: it is independent of the solver that
/// computed it and may outlive it. Copies share one solution. It is thread-safe; if several processes share the plan,
/// all of them must call derivatives together, and the team must still exist.
class Solution {
 public:
  /// What was solved and how; transport::solve() and Solver make it.
  struct [[gnu::visibility("hidden")]] State;
  explicit Solution(std::shared_ptr<State> state);

  [[nodiscard]] const Matrix& plan() const&;  ///< Γ, n×m.
  [[nodiscard]] Matrix plan() &&;
  /// In the unit of the cost: Γ_ij = μ_i ν_j exp((ξ_i + ζ_j - C_ij)/ε).
  [[nodiscard]] const Vector& row_potential() const;
  [[nodiscard]] const Vector& column_potential() const;
  [[nodiscard]] const Vector& row_sums() const;  ///< Of Γ.
  [[nodiscard]] const Vector& column_sums() const;

  [[nodiscard]] double value() const;           ///< <C,Γ> + ε Σ Γ(log(Γ/(μ⊗ν)) - 1) + R₁ + R₂.
  [[nodiscard]] double transport_cost() const;  ///< <C,Γ>.
  [[nodiscard]] double epsilon() const;         ///< In the unit of the cost.

  [[nodiscard]] bool converged() const;
  [[nodiscard]] const std::string& message() const;  ///< The reason when not converged.
  [[nodiscard]] double marginal_error() const;       ///< Σ|sums - demanded| over rows and columns.
  /// Marginal error before the first and after every step at the final ε.
  [[nodiscard]] const std::vector<double>& error_history() const;
  [[nodiscard]] int sinkhorn_steps() const;
  [[nodiscard]] int newton_steps() const;

  /// dF/dC of the transport cost F = <C,Γ*(C)>, differentiated through Γ* (one adjoint solve). For Objective::entropic,
  /// of the value, it is Γ itself. ε counts as a constant.
  [[nodiscard]] Matrix gradient(Objective objective = Objective::transport) const;

  /// dL/dC of any L that depends on the plan, given cotangent = dL/dΓ (one adjoint solve). ε counts as a constant.
  [[nodiscard]] Matrix pull_back(const MatrixRef& cotangent) const;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace transport
}  // namespace unshuffle
