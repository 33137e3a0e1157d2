// Rows in an order that is partly right, with a law of the noise that is estimated. The derivation stands in
// followed_mixture.cpp.
#pragma once

#include "likelihood/candidate_links.hpp"
#include "likelihood/wrong_links.hpp"

namespace unshuffle {

struct FollowedMixture {
  Vector parameters;
  Matrix covariance;             ///< The share of wrong links counted as uncertain.
  double mismatch_rate = 0;      ///< α, averaged over what the rows leave possible.
  double rate_sd = 0;            ///< How uncertain it is.
  bool rate_is_limited = false;  ///< The most likely α is the largest one allowed.
  double noise_variance = 0;
  Vector link_probability;    ///< Per link; 1 for known ones.
  double log_likelihood = 0;  ///< In nats, at the most likely α.
  double independence = 1;    ///< How probable it is that wrong links depend on the features as much, if they do not.
  double agreement = 1;       ///< How probable it is that regression on all links differs as much, if this is right.
  int iterations = 0;
};

/// Whether there is one: one response, a model that is linear in its coefficients, and open links.
[[nodiscard]] bool can_be_followed(const Model& bound, const CandidateLinks& links);

/// `linked` is least squares on all links, `largest` what share of them may be wrong.
[[nodiscard]] FollowedMixture follow_mixture(const Model& bound, const CandidateLinks& links,
                                             const LeastSquares& linked, const MismatchRate& largest);

/// How probable it is that the chance of a link to be wrong depends on the features as much as `link_probability` says,
/// if it does not. Where a model is too simple, or its law of the noise wrong, rows that fit badly lie somewhere.
[[nodiscard]] double independence_of_features(const Model& bound, const CandidateLinks& links, const Vector& w,
                                              const Vector& link_probability);

/// Regression on all links where between none and `largest` of them are wrong, nobody knows how many.
struct SpreadRegression {
  Vector parameters;
  Matrix covariance;
};
[[nodiscard]] SpreadRegression spread_regression(const Model& bound, const CandidateLinks& links,
                                                 const LeastSquares& linked, double largest);

}  // namespace unshuffle
