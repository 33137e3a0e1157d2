// Removes the bias of the likelihood over all links by simulation and estimates the uncertainty of its optimum.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "likelihood/likelihood.hpp"

namespace unshuffle {

/// A changed assumption: samples of the model under it, and what the answer would be.
struct WhatIf {
  std::string assumption;  ///< "the noise is skewed".
  Vector shift;            ///< How far the coefficients would move.
  double misfit = 0;       ///< How far the responses' distribution would be from the model's, as in Calibrated.
};

struct Calibrated {
  Optimum optimum;    ///< `nats` is still the likelihood's own value, comparable with other optima.
  Vector tilt;        ///< What was subtracted from the gradient.
  Matrix covariance;  ///< Of the parameters; empty where the likelihood does not curve upward all around.
  double misfit = 0;  ///< How far the responses' distribution is from that of samples of the model, in standard
                      ///< deviations of how far those are; within groups, where there are any.
  std::vector<WhatIf> what_if{};  ///< Assumptions that nothing but the responses' distribution could refute.

  /// The covariance, including every alternative assumption that the responses do not rule out.
  [[nodiscard]] Matrix doubted_covariance() const;
  /// These assumptions.
  [[nodiscard]] std::vector<const WhatIf*> unrefuted() const;
};

/// Needs the Hessian (sorted backend). Same seed, same answer.
[[nodiscard]] Calibrated calibrated(const Problem& problem, const Model& bound, const LikelihoodOptions& options,
                                    const Optimum& from, std::uint64_t seed);

/// How far 95 % intervals reach below and above the parameters, by the profile (profile.hpp). `answer` has a
/// covariance.
[[nodiscard]] Matrix margins_of(const Calibrated& answer, const Problem& problem, const Model& bound,
                                const LikelihoodOptions& options);

}  // namespace unshuffle
