// Takes the bias out of the likelihood over all links by simulation, and says how uncertain its optimum is.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "likelihood/likelihood.hpp"

namespace unshuffle {

/// An assumption made otherwise: samples of the model with it, and what the answer would be.
struct WhatIf {
  std::string assumption;  ///< "the noise is skewed".
  Vector shift;            ///< How far the coefficients would move.
  double misfit = 0;       ///< How far the responses' distribution would be from the model's, as in Calibrated.
};

struct Calibrated {
  Optimum optimum;    ///< `nats` is still the likelihood's own value, comparable with other optima.
  Vector tilt;        ///< What was taken off the gradient.
  Matrix covariance;  ///< Of the parameters; empty where the likelihood does not curve upward all around.
  double misfit = 0;  ///< How far the responses' distribution is from that of samples of the model, in standard
                      ///< deviations of how far those are; within groups, where there are any.
  std::vector<WhatIf> what_if{};  ///< Assumptions that nothing but the responses' distribution could refute.

  /// The covariance with every assumption counted that the responses would not have refuted.
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
