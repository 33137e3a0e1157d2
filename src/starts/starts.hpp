// Where descents begin.
#pragma once

#include <string>
#include <vector>

#include "links/linked.hpp"
#include "unshuffle/starts/start_options.hpp"

namespace unshuffle {

struct Start {
  std::string kind;
  Vector parameters;
  Matrix covariance;    ///< Uncertainty of `parameters` if known, else empty.
  double noise_sd = 0;  ///< Of linked rows if known, else 0.
};

/// The starts that the options request, most trusted first. `problem` is completed(), `bound` is bound to it.
[[nodiscard]] std::vector<Start> make_starts(const Problem& problem, const Model& bound, const StartOptions& options,
                                             std::uint64_t seed);

/// Least squares on linked rows. Models linear in w have one solution; others are tried from several points.
[[nodiscard]] LeastSquares best_least_squares(const Problem& problem, const Model& bound, const LinkedRows& rows,
                                              const Vector& row_weights, std::uint64_t seed);

/// A step of each parameter that changes predictions about as much as y varies; from rows paired at random.
[[nodiscard]] Vector natural_steps(const Problem& problem, const Model& bound, const VectorRef& w);

}  // namespace unshuffle
