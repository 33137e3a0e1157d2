// Rows in partly correct order: which links are right, how many, and the resulting w.
#pragma once

#include <cstdint>

#include "likelihood/candidate_links.hpp"

namespace unshuffle {

struct MixtureFit {
  Vector parameters;
  double noise_variance = 0;     ///< σ², per output.
  double mismatch_rate = 0;      ///< α, of the links that are not known.
  bool rate_is_limited = false;  ///< α is the largest one allowed; the likelihood alone would say more.
  Vector link_probability;       ///< Per link; 1 for known ones.
  double log_likelihood = 0;     ///< In nats.
  double gain = 0;               ///< Nats over the same rows with no link right.
  Matrix covariance;             ///< Sandwich, of `parameters`.
  Matrix model_covariance;       ///< Inverse observed information, of `parameters`.
  Index tied = 0;                ///< Rows of one response that would have been, or are, the only right links; 0: none.
  bool only_ties = false;        ///< They are; no other solution was found.
  double kept_above = 0;         ///< Lower bound imposed on `noise_variance` because of them.
  int iterations = 0;
  bool converged = false;
};

struct MixtureOptions {
  int max_iterations = 500;
  double tolerance = 1e-8;          ///< Relative change of the log-likelihood per row that ends the iteration.
  double known_noise_variance = 0;  ///< 0: estimated.
  double least_noise_variance = 0;  ///< Estimated, it is at least this.
  double largest_rate = 1;          ///< α is at most this, whatever the likelihood says,
  double rate_variance = 0;         ///< which is known so exactly.
  std::uint64_t seed = 0;
};

/// Adds to the options the bound on wrong links derived from regression on all links (`linked`).
void bound_mismatch_rate(const Model& bound, const CandidateLinks& links, const LeastSquares& linked,
                         MixtureOptions& options);

/// α exceeds the limit by more than chance explains (p = 0.01).
[[nodiscard]] bool rate_is_implausible(double rate, const MixtureOptions& options);

/// EM from `start`.
[[nodiscard]] MixtureFit fit_mixture(const Model& bound, const CandidateLinks& links, const Vector& start,
                                     const MixtureOptions& options = {});

/// The width of the law of wrong links around each response, squared, per output. Right links that are closer to each
/// other than this cannot be told from a response that repeats.
[[nodiscard]] double resolution(const Matrix& y, std::uint64_t seed);

/// The most likely result of EM from least squares, from least squares with the attenuation by wrong links undone, from
/// its best-fitting half and, for few parameters, from a consensus. The rate is limited only if the likelihood's is
/// implausible, the noise only if repeated responses would otherwise make up all right links.
[[nodiscard]] MixtureFit fit_mixture_from_all(const Model& bound, const CandidateLinks& links,
                                              const LeastSquares& linked, const MixtureOptions& options = {});

}  // namespace unshuffle
