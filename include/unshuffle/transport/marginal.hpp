// What a side of the transport problem demands of its row sums (docs/mathematics.md §2.3).
#pragma once

#include <variant>

#include "unshuffle/core/export.hpp"
#include "unshuffle/core/types.hpp"

namespace unshuffle {
namespace transport UNSHUFFLE_EXPORT {

/// Row sums are exactly the given weights (ROBOT).
struct Exact {};

/// Row sums may deviate from the given weights within a ball, so rows without a partner can stay unmatched
/// (ROBOT-robust).
/// With r = μ̄/μ the ball is Σ μ (r-1)² ≤ spread and Σ μ r = 1. For n equal weights spread = n·ρ with the paper's
/// ‖μ̄-μ‖² ≤ ρ on the simplex; leaving a fraction f of the mass unmatched needs spread = f/(1-f), whatever n is.
struct Ball {
  double spread = 0.25;
  double entropy = 1.0;  ///< ε₁ in units of ε: keeps every μ̄ positive. Lower: sharper between matched and unmatched.
};

/// Deviation of the row sums from the weights costs τ·KL(μ̄‖μ) (unbalanced transport). Total mass is not fixed.
struct KullbackLeibler {
  double strength = 1.0;  ///< τ, in the unit of the cost. Large: nearly exact. Small: nearly free.
};

/// Row sums are determined by the other side (semi-relaxed).
struct Free {};

/// This side has `ratio` times as many rows as the other, whose sums must be exact, and links are one to one.
/// Above one, some rows here have no partner, unknown which: r ≤ ratio. Below one, every row here has its partner and
/// the surplus rows of the other side belong to unobserved rows of the same distribution: r ≥ ratio. With ratio one it
/// is Exact. The number of ways to choose the rows without a partner is part of the entropy, so there is nothing to
/// tune; formulas are in side.cpp and docs/mathematics.md §2.5.
struct Sampled {
  double ratio = 0;  ///< 0: from the numbers of rows; if both sides are sampled, only the one with more rows.
};

using MarginalPolicy = std::variant<Exact, Ball, KullbackLeibler, Free, Sampled>;

/// Throws InvalidInput for an invalid policy.
void validate(const MarginalPolicy& policy);

/// Throws InvalidInput if either is invalid, or the two cannot be combined.
void validate(const MarginalPolicy& rows, const MarginalPolicy& columns);

struct MarginalPolicies {
  MarginalPolicy rows, columns;
};

/// The policies of sides with n and m rows, with the ratios of sampled sums filled in.
[[nodiscard]] MarginalPolicies of_sizes(MarginalPolicy rows, MarginalPolicy columns, Index n, Index m);

}  // namespace transport
}  // namespace unshuffle
