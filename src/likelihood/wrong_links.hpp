// Rows in an order that is partly right: what can be said of w without a law of the noise. The derivation stands in
// wrong_links.cpp.
#pragma once

#include <cstdint>

#include "likelihood/candidate_links.hpp"

namespace unshuffle {

/// The model is affine in its basis rows, so that its mean over partners is its value at their mean.
[[nodiscard]] bool averages_over_partners(const Model& bound);

/// The rows with a share of every feature row that is not known replaced by its block's mean: what a response may
/// expect of its partner when that share of the links is wrong.
[[nodiscard]] LinkedRows averaged(const CandidateLinks& links, double share);

/// Share of the links that are not known and wrong, at most.
struct MismatchRate {
  double rate = 0;
  double variance = 0;
  Vector influence;  ///< What each link adds to the error of `rate`.
};

/// From where the predictions at `w`, least squares on all links, contradict the responses most. For models that
/// average over partners.
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

/// How probable it is that rows in order agree as well when none of them belong together. For models that average over
/// partners.
[[nodiscard]] double significance_of_order(const Model& bound, const CandidateLinks& links);

/// How probable it is that regression on all links differs as much from w, whatever share of them is wrong, if w is
/// right; 1 when there is nothing to compare.
[[nodiscard]] double agreement_with_regression(const Model& bound, const CandidateLinks& links, const Vector& w);

}  // namespace unshuffle
