// Takes the bias out of the likelihood over all links by simulation, and says how uncertain its optimum is.
#pragma once

#include <cstdint>

#include "likelihood/likelihood.hpp"

namespace unshuffle {

struct Calibrated {
  Optimum optimum;    ///< `nats` is still the likelihood's own value, comparable with other optima.
  Vector tilt;        ///< What was taken off the gradient.
  Matrix covariance;  ///< Of the parameters; empty where the likelihood does not curve upward all around.
  double misfit = 0;  ///< How far the responses' distribution is from that of samples of the model, in standard
                      ///< deviations of how far those are.
};

/// Needs the Hessian (sorted backend). Same seed, same answer.
[[nodiscard]] Calibrated calibrated(const Problem& problem, const Model& bound, const LikelihoodOptions& options,
                                    const Optimum& from, std::uint64_t seed);

/// How far 95 % intervals reach below and above the parameters, by the profile (profile.hpp). `answer` has a
/// covariance.
[[nodiscard]] Matrix margins_of(const Calibrated& answer, const Problem& problem, const Model& bound,
                                const LikelihoodOptions& options);

}  // namespace unshuffle
