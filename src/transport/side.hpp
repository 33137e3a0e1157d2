// One side of the transport problem as the solvers see it: weights, a policy, and the policy's three operations.
//
// Everything is in units of ε: u = ξ/ε, and the plan is written against the weights,
//   Γ_ij = μ_i ν_j exp(u_i + v_j - C_ij/ε),     row sums  μ̄_i = μ_i r_i,     r_i = exp(u_i + ℓ_i),
//   ℓ_i = log Σ_j ν_j exp(v_j - C_ij/ε).
// A policy R (docs/mathematics.md §2.3) enters the lower problem as  min <C,Γ> + ε KL(Γ | μ⊗ν) + R(Γ1)  by
//   scale:      given ℓ, the ratio r (and so u = log r - ℓ) that maximises the dual over this side;
//   respond:    given u, the ratio the policy requires and its dual term φ(u) = min_r R(μr)/ε + <u, μr>;
//   curvature:  εM with d(μ̄) = -εM du at the solution, as a diagonal minus a thin low-rank part.
// Nothing else in the library depends on which policy is used.
#pragma once

#include "unshuffle/transport/marginal.hpp"

namespace unshuffle::transport {

/// Multipliers of the ball, in units of ε: λ₁ of Σμr = 1 and λ₃ ≥ 0 of Σμ(r-1)² ≤ spread. Zero for other policies.
struct Multipliers {
  double mass = 0;
  double ball = 0;
};

struct Ratio {
  Vector log_ratio;  ///< log r.
  double dual = 0;   ///< φ(u).
  double size = 0;   ///< Largest potential that went into φ; its rounding is φ's.
  Multipliers multipliers;
};

/// εM = diag(diagonal) - border·inverse(core)·borderᵀ, in units of mass. border has 0, 1 or 2 columns.
struct Curvature {
  Vector diagonal;
  Matrix border;
  Matrix core;

  [[nodiscard]] Vector apply(const VectorRef& x) const;
};

class SideTerms {
 public:
  SideTerms() = default;
  /// `own_cost`, in units of ε: the cost of a row's mass independent of the partner; empty: none.
  SideTerms(MarginalPolicy policy, Vector weights, double epsilon, Vector own_cost = {});

  [[nodiscard]] const Vector& weights() const { return weights_; }
  void set_epsilon(double epsilon) { epsilon_ = epsilon; }

  /// Row sums do not follow from the potential: u is zero whatever the other side does.
  [[nodiscard]] bool is_free() const { return std::holds_alternative<Free>(policy_); }
  /// Whether the policy fixes the total mass. If both sides do, potentials are determined only up to a constant.
  [[nodiscard]] bool fixes_mass() const;

  /// The policy's answer to log sums; `base` is the part of u that is already in them: ℓ = log_sums - base.
  /// (Splitting u keeps its digits when ε is tiny; for exact marginals φ omits the constant <base, μ>.)
  [[nodiscard]] Ratio scale(const VectorRef& log_sums, const VectorRef& base) const;
  /// The policy's answer to a potential u = base + potential; sampled sums have none.
  [[nodiscard]] Ratio respond(const VectorRef& potential, const VectorRef& base) const;
  /// r at other positions of the same side, whose log sums less own costs are given, under multipliers already found.
  [[nodiscard]] Vector extend(const VectorRef& log_sums, const Multipliers& multipliers) const;

  [[nodiscard]] Curvature curvature(const VectorRef& log_ratio, const Multipliers& multipliers) const;
  /// k with diag(εM) = μ r k: how a row's ratio responds to its potential, d(log r) = -k du at fixed multipliers.
  [[nodiscard]] Vector compliance(const VectorRef& log_ratio, const Multipliers& multipliers) const;
  /// The columns B that the border of εM is made of.
  [[nodiscard]] Matrix unit_border(const VectorRef& log_ratio, const Multipliers& multipliers) const;

  /// R(μr)/ε, own costs included.
  [[nodiscard]] double penalty(const VectorRef& log_ratio) const;

 private:
  void set_dual(Ratio& answer, const VectorRef& potential, const VectorRef& base) const;
  [[nodiscard]] double penalty_of_policy(const VectorRef& log_ratio) const;

  MarginalPolicy policy_;
  Vector weights_, own_cost_;
  double epsilon_ = 1;
};

}  // namespace unshuffle::transport
