// What a side of the transport problem demands of its row sums.
#pragma once

#include <variant>

#include "unshuffle/types.hpp"

namespace unshuffle::transport {

/// Row sums are exactly the given weights (ROBOT).
struct Exact {};

/// Row sums may leave the given weights within a ball, so rows without a partner can stay unmatched (ROBOT-robust).
/// With r = μ̄/μ the ball is Σ μ (r-1)² ≤ spread and Σ μ r = 1. For n equal weights spread = n·ρ with the paper's
/// ‖μ̄-μ‖² ≤ ρ on the simplex; leaving a fraction f of the mass unmatched needs spread = f/(1-f), whatever n is.
struct Ball {
  double spread = 0.25;
  double entropy = 1.0;  ///< ε₁ in units of ε: keeps every μ̄ positive. Lower: sharper between matched and unmatched.
};

/// Row sums pay τ·KL(μ̄‖μ) for leaving the weights (unbalanced transport). Total mass is not fixed.
struct KullbackLeibler {
  double strength = 1.0;  ///< τ, in the unit of the cost. Large: nearly exact. Small: anything goes.
};

/// Row sums are whatever the other side makes them (semi-relaxed).
struct Free {};

using MarginalPolicy = std::variant<Exact, Ball, KullbackLeibler, Free>;

/// Throws InvalidInput when a policy's numbers make no sense.
void validate(const MarginalPolicy& policy);

}  // namespace unshuffle::transport
