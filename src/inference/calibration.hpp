// Takes the bias out of the likelihood over all links by simulation, and says how uncertain its optimum is.
#pragma once

#include <cstdint>

#include "inference/likelihood.hpp"

namespace unshuffle {

struct Calibrated {
  Optimum optimum;    ///< `nats` is still the likelihood's own value, comparable with other optima.
  Matrix covariance;  ///< Of the parameters; empty where the likelihood does not curve upward all around.
  Matrix margins;     ///< Of 95 % intervals, below and above; see profile.hpp. Empty likewise.
};

/// Needs the Hessian (sorted backend). Same seed, same answer.
[[nodiscard]] Calibrated calibrated(const Problem& problem, const Model& bound, const LikelihoodOptions& options,
                                    const Optimum& from, std::uint64_t seed);

}  // namespace unshuffle
