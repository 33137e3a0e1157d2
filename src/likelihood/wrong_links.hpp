// Rows in partly correct order: what follows about w without assuming a noise law. Derivation: wrong_links.cpp,
// docs/mathematics.md §7.
#pragma once

#include <cmath>
#include <cstdint>

#include "likelihood/candidate_links.hpp"

namespace unshuffle {

/// Whether the model is affine in its basis rows, so that its mean over partners is its value at their mean.
[[nodiscard]] bool averages_over_partners(const Model& bound);

/// The feature rows with a share of every one that is not known replaced by its block's mean: the expected partner of a
/// response when that share of the links is wrong.
[[nodiscard]] LinkedRows averaged(const CandidateLinks& links, double share);

/// Upper bound on the share of wrong links among those not known.
struct MismatchRate {
  double rate = 0;
  double variance = 0;
  Vector influence;  ///< Each link's contribution to the error of `rate`.

  /// With two standard errors.
  [[nodiscard]] double at_most() const { return rate + 2 * std::sqrt(variance); }
};

/// From the pairs in which the predictions at `w`, least squares on all links, contradict the responses most. For
/// models that average over partners.
[[nodiscard]] MismatchRate largest_mismatch_rate(const Model& bound, const CandidateLinks& links, const Vector& w,
                                                 std::uint64_t seed);

struct AdjustedFit {
  Vector parameters;
  Matrix covariance;          ///< Sandwich; the rate counted as estimated.
  double noise_variance = 0;  ///< Per output.
  MismatchRate mismatch;
};

/// Regression on all links, adjusted for the wrong ones, for models that average over partners. `linked` is least
/// squares on them.
[[nodiscard]] AdjustedFit fit_adjusted(const Model& bound, const CandidateLinks& links, const LeastSquares& linked,
                                       std::uint64_t seed);

/// The p-value of the agreement of rows in order if no link is right. For models that average over partners.
[[nodiscard]] double significance_of_order(const Model& bound, const CandidateLinks& links);

/// How far regression on all links is from what it would be if w were right, at the share of right links that brings
/// them closest.
struct Contrast {
  double squares = 0;  ///< χ² with so many degrees of freedom if w is right.
  Index freedom = 0;   ///< 0: there is nothing to compare.
  double right = 1;    ///< That share.
};
[[nodiscard]] Contrast contrast_with_regression(const Model& bound, const CandidateLinks& links, const Vector& w);

/// Its p-value; 1 where there is nothing to compare.
[[nodiscard]] double agreement_with_regression(const Model& bound, const CandidateLinks& links, const Vector& w);

}  // namespace unshuffle
