// The sums over rows that EM over links in the given order needs, and the information in its answer. They add up over
// pieces of a table, so tables in memory and tables in pieces share this code.
//
// Link i is right with probability 1-α, and then y_i ~ N(f_i, σ²I) with o outputs; else y_i is drawn from a density q
// that does not depend on the features. J is ∂f/∂w, r = y - f, and π the probability that a link is right.
#pragma once

#include "unshuffle/core/types.hpp"

namespace unshuffle {

struct LinkBelief {
  double noise_variance = 0;  ///< σ², per output.
  double mismatch_rate = 0;   ///< α, of the links that are not known.
};

/// Limits on a belief, imposed regardless of the rows.
struct BeliefLimits {
  double known_noise_variance = 0;  ///< 0: estimated.
  double least_noise_variance = 0;  ///< Rows without noise would make their links infinitely likely.
  double largest_rate = 1;          ///< α is at most this.
};

struct LimitedBelief : LinkBelief {
  bool noise_is_given = false;   ///< σ² is known, or the least there can be.
  bool rate_is_limited = false;  ///< α is the largest one allowed; the likelihood alone would say more.
};

[[nodiscard]] LimitedBelief limited(const LinkBelief& estimate, const BeliefLimits& limits);

/// Far below any noise that responses like these could reveal.
[[nodiscard]] double least_noise_variance(const Matrix& y);

/// Rows at one w; a view.
struct LinkedResiduals {
  const Matrix& residual;   ///< r, a column per output.
  const Vector& log_other;  ///< log q.
  const Vector& weights;    ///< One per row.
  Index known = 0;          ///< This many leading rows have known links.
};

struct Expectation {
  Vector probability;  ///< π.
  double log_likelihood = 0;
};

/// The E step.
[[nodiscard]] Expectation expect_links(const LinkedResiduals& rows, const LinkBelief& belief);

/// The links, each as far as it is right.
struct RightLinks {
  double numbers = 0;     ///< o Σ π.
  double squares = 0;     ///< Σ π|r|², at the w of the same M step.
  double open = 0;        ///< How many links are not known,
  double open_right = 0;  ///< and Σ π of these.
};

/// The M step of σ² and α; that of w is weighted least squares. Where all links are known, α is one half.
[[nodiscard]] LimitedBelief maximised(const RightLinks& links, const BeliefLimits& limits);

/// Weighted sums over rows.
struct MixtureSums {
  double log_likelihood = 0;
  double links = 0;    ///< Σ π.
  double open = 0;     ///< How many links are not known.
  double squares = 0;  ///< Σ π|r|².
  Vector right;        ///< Σ π Jᵀr.
  Matrix matrix;       ///< Σ π JᵀJ.
  Matrix doubt;        ///< Σ π(1-π) d dᵀ,   d = (Jᵀr/σ², |r|²/(2σ²) - o/2, 1).
  Matrix scores;       ///< Σ s sᵀ,   s = π d - (0, 0, 1-α).

  explicit MixtureSums(Index parameters = 0);
  MixtureSums& operator+=(const MixtureSums& more);
};

/// `jacobian` has the outputs below each other.
[[nodiscard]] MixtureSums mixture_sums(const LinkedResiduals& rows, const Matrix& jacobian, const Expectation& expected,
                                       const LinkBelief& belief);

struct MixtureCovariance {
  Matrix model;     ///< Inverse observed information, of w.
  Matrix sandwich;  ///< Remains valid when noise or q are not as assumed.
};

/// Parameters set by a limit do not come from the likelihood; `rate_variance` is that of a limited α.
[[nodiscard]] MixtureCovariance mixture_covariance(const MixtureSums& sums, const LimitedBelief& belief,
                                                   double rate_variance);

}  // namespace unshuffle
