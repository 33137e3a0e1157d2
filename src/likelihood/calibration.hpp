// Removes the bias of the likelihood over all links by simulation and estimates the uncertainty of its optimum.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "likelihood/likelihood.hpp"
#include "unshuffle/likelihood/what_if.hpp"

namespace unshuffle {

/// Of so many rows in groups summed exactly, the likelihood is a parabola and whole refits tell no more than one step.
inline constexpr Index many_rows = 20'000;

struct Calibrated {
  Optimum optimum;         ///< `nats` is still the likelihood's own value, comparable with other optima.
  Vector tilt;             ///< What was subtracted from the gradient.
  Matrix covariance;       ///< Of the parameters; empty where the likelihood does not curve upward all around.
  double misfit = 0;       ///< How far the responses' distribution is from that of samples of the model, in standard
                           ///< deviations of how far those are; within groups, where there are any.
  double means_agree = 1;  ///< Probability that group means are as far from the predicted ones by chance.
  bool exact = false;      ///< Nothing is approximated, so nothing was subtracted; the covariance is the curvature's.
  Matrix sampled_quantiles{};     ///< Of the responses of these samples, a sample per column.
  std::vector<WhatIf> what_if{};  ///< Assumptions that nothing but the responses' distribution could rule out.

  /// Makes every standard error at least as large as this one.
  void widen(const Vector& errors);

  /// The covariance with every assumption counted that is not ruled out.
  [[nodiscard]] Matrix doubted_covariance() const;
  /// How far 95 % intervals reach below and above the parameters: by their profile or the covariance, whichever is
  /// further, with the same assumptions counted.
  [[nodiscard]] Matrix margins(const Matrix& profile) const;
};

/// Needs the Hessian (sorted backend). Same seed, same answer.
[[nodiscard]] Calibrated calibrated(const Problem& problem, const Model& bound, const LikelihoodOptions& options,
                                    const Optimum& from, std::uint64_t seed);

/// Adds what the answer would be under other assumptions, what groups say of it besides the likelihood, and widens its
/// standard errors accordingly.
void question(Calibrated& answer, const Problem& problem, const Model& bound, const LikelihoodOptions& options,
              std::uint64_t seed);

/// How far 95 % intervals reach below and above the parameters by the profile alone (profile.hpp). `answer` has a
/// covariance.
[[nodiscard]] Matrix profile_of(const Calibrated& answer, const Problem& problem, const Model& bound,
                                const LikelihoodOptions& options);

}  // namespace unshuffle
