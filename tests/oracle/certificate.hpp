// Whether a plan satisfies its policies, from their definitions alone, without any code of the solvers.
#pragma once

#include <algorithm>
#include <cmath>

#include "unshuffle/core/types.hpp"
#include "unshuffle/transport/marginal.hpp"

namespace unshuffle::transport::testing {

/// Mass by which sums and potential of a side miss its policy, computed from the definition of the policy.
inline double policy_error(const MarginalPolicy& policy, const Vector& weights, const Vector& sums,
                           const Vector& potential, double epsilon) {
  if (std::holds_alternative<Exact>(policy)) return (sums - weights).lpNorm<1>();
  if (std::holds_alternative<Free>(policy)) return (potential / epsilon).lpNorm<Eigen::Infinity>();
  if (const auto* kl = std::get_if<KullbackLeibler>(&policy))
    return (sums.array() - weights.array() * (-potential.array() / kl->strength).exp()).abs().sum();
  if (const auto* sampled = std::get_if<Sampled>(&policy)) {
    const double ratio = sampled->ratio;
    const Eigen::ArrayXd u = potential.array() / epsilon;
    // r = κ - (κ - 1)e^u, but never below zero; or e^u (r - κ) = (1 - κ) r.
    if (ratio > 1) return (sums.array() - weights.array() * (ratio - (ratio - 1) * u.exp()).max(0)).abs().sum();
    return (sums.array() * (1 - (1 - ratio) * (-u).exp()) - ratio * weights.array()).abs().sum();
  }
  // -u = e₁ log r + λ₁ + 2λ₃(r - 1) with any λ₃ ≥ 0, which is 0 inside the ball. What is left of it turns into mass by
  // the curvature. λ₃ shows in rows that hold mass, or, where they all hold the same, in the emptiest one.
  const auto& ball = std::get<Ball>(policy);
  const Eigen::ArrayXd r = (sums.array() / weights.array()).max(1e-300);  // a row may hold less than the least double
  const Eigen::ArrayXd left = -potential.array() / epsilon - ball.entropy * r.log(), mass = weights.array() * r;
  const auto missed_with = [&](double multiplier) {
    const Eigen::ArrayXd rest = left - 2 * multiplier * (r - 1);
    const double mass_multiplier = (mass * rest).sum() / mass.sum();
    return (weights.array() * (rest - mass_multiplier).abs() / (ball.entropy / r + 2 * multiplier)).sum();
  };
  double missed = missed_with(0);
  const double distance = (weights.array() * (r - 1).square()).sum();
  if (distance > ball.spread * (1 - 1e-7)) {
    const double mean_r = (mass * r).sum() / mass.sum(), variance = (mass * (r - mean_r).square()).sum();
    if (variance > 0)
      missed = std::min(missed, missed_with(std::max(0.0, (mass * (r - mean_r) * left).sum() / variance / 2)));
    Index fullest = 0, emptiest = 0;
    const double apart = r.maxCoeff(&fullest) - r.minCoeff(&emptiest);
    if (apart > 0) missed = std::min(missed, missed_with(std::max(0.0, (left[fullest] - left[emptiest]) / apart / 2)));
  }
  return missed + std::abs(sums.sum() - 1) + std::max(0.0, distance - ball.spread);
}

}  // namespace unshuffle::transport::testing
