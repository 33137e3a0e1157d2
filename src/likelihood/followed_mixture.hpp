// Rows in partly correct order with an estimated noise law. Derivation: followed_mixture.cpp, docs/mathematics.md §8.
#pragma once

#include "likelihood/candidate_links.hpp"
#include "likelihood/wrong_links.hpp"

namespace unshuffle {

struct FollowedMixture {
  Vector parameters;
  Matrix covariance;  ///< The share of wrong links counted as uncertain.
  struct {
    Vector parameters;
    Matrix covariance;
  } if_exact{};  ///< The same if nothing but chance can mislead the likelihood, as that of normal noise assumes, too.
  double mismatch_rate = 0;      ///< α, averaged over what the rows leave possible.
  double rate_sd = 0;            ///< How uncertain it is.
  bool rate_is_limited = false;  ///< The most likely α is the largest one allowed.
  double noise_variance = 0;
  Vector link_probability;    ///< Per link; 1 for known ones.
  double log_likelihood = 0;  ///< In nats, at the most likely α.
  double independence =
      1;                 ///< Probability of a dependence of wrong links on the features this strong if there is none.
  double agreement = 1;  ///< Probability that regression on all links differs this much if this answer is right.
  int iterations = 0;
};

/// Whether there is one: one response, a model that is linear in its coefficients, and open links.
[[nodiscard]] bool can_be_followed(const Model& bound, const CandidateLinks& links);

/// `linked` is least squares on all links, `largest` what share of them may be wrong.
[[nodiscard]] FollowedMixture follow_mixture(const Model& bound, const CandidateLinks& links,
                                             const LeastSquares& linked, const MismatchRate& largest);

/// The p-value for wrong links being independent of the features, given `link_probability`. If the model is too simple
/// or its noise law wrong, badly fitting rows cluster somewhere.
[[nodiscard]] double independence_of_features(const Model& bound, const CandidateLinks& links, const Vector& w,
                                              const Vector& link_probability);

/// Regression on all links when an unknown share of them, at most `largest`, is wrong.
struct SpreadRegression {
  Vector parameters;
  Matrix covariance;
  Matrix sampling;  ///< The part of it that more rows would reduce; the rest is that the share is not known.
};
[[nodiscard]] SpreadRegression spread_regression(const Model& bound, const CandidateLinks& links,
                                                 const LeastSquares& linked, double largest);

}  // namespace unshuffle
