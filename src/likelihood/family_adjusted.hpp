// Regression on rows in order, adjusted for a stated rate of wrong links, for every law with a mean and for Cox
// regression.
//
// Link i is wrong with probability α_i, and then points at any other of the n links of its block, so with
// a_i = α_i n/(n-1) the mean of y_i is μ̃_i = (1 - a_i) μ_i + a_i μ̄, μ̄ being the mean over the block. The coefficients
// solve Σ G_i (y_i - μ̃_i) = 0 with weights G (Chambers 2009). In Cox regression the sums over the rows at risk become
// those expected of right links (Vo et al. 2024). docs/mathematics.md §7, §21.
#pragma once

#include "likelihood/family_fit.hpp"
#include "unshuffle/likelihood/weighting.hpp"

namespace unshuffle {

/// What is known of wrong links.
struct StatedRate {
  Vector rate;                 ///< Of every link; 0: it is known.
  double audit = 0;            ///< Links examined to find it; 0: it is exact.
  std::vector<Index> block{};  ///< Of every link.
};

[[nodiscard]] StatedRate stated_rate(const RowFacts& facts, const Links& links, const CandidateLinks& candidates);

struct FamilyAdjustedFit {
  Vector parameters;
  Shape shape = Shape::Zero();  ///< Gaussian: the log variance of the noise.
  Matrix covariance;            ///< Sandwich, the rate as uncertain as its audit.
  bool converged = false;
  int iterations = 0;
};

/// For gaussian, binomial, poisson and gamma.
[[nodiscard]] FamilyAdjustedFit fit_family_adjusted(const Family& family, const FamilyRows& rows,
                                                    const StatedRate& wrong, Weighting weighting);

/// rows.y holds the times.
[[nodiscard]] FamilyAdjustedFit fit_cox_adjusted(const FamilyRows& rows, const Vector& event, const StatedRate& wrong);

}  // namespace unshuffle
