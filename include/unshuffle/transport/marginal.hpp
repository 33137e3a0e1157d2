// What a side of the transport problem demands of its row sums.
#pragma once

#include <variant>

#include "unshuffle/core/export.hpp"
#include "unshuffle/core/types.hpp"

namespace unshuffle {
namespace UNSHUFFLE_EXPORT transport {

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

/// This side has `ratio` times as many rows as the other, whose sums must be exact, and links are one to one.
/// Above one, some rows here have no partner, nobody knows which: r ≤ ratio. Below one, every row here has its partner
/// and the further rows of the other side belong to rows that were not seen but are like those that were: r ≥ ratio.
/// With ratio one it is Exact. How many ways there are to choose who goes without is part of the entropy, so there is
/// nothing to tune; the formulas stand in side.cpp.
struct Sampled {
  double ratio = 0;  ///< 0: as many as there are rows for each row there; of both sides, then the one with more rows.
};

using MarginalPolicy = std::variant<Exact, Ball, KullbackLeibler, Free, Sampled>;

/// Throws InvalidInput when a policy's numbers make no sense.
void validate(const MarginalPolicy& policy);

/// Throws InvalidInput when either makes no sense, or not beside the other.
void validate(const MarginalPolicy& rows, const MarginalPolicy& columns);

struct MarginalPolicies {
  MarginalPolicy rows, columns;
};

/// The policies of sides with n and m rows, with the ratios of sampled sums filled in.
[[nodiscard]] MarginalPolicies of_sizes(MarginalPolicy rows, MarginalPolicy columns, Index n, Index m);

}  // namespace transport
}  // namespace unshuffle
