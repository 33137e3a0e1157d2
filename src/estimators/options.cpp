#include "estimators/options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "unshuffle/core/error.hpp"

namespace unshuffle {

namespace {

void require(bool holds, const char* option, double value, const char* constraint) {
  if (!holds) throw InvalidInput(fmt::format("{} = {} must be {}", option, value, constraint));
}

bool positive(double value) { return value > 0 && std::isfinite(value); }

/// One side of a robust fit.
struct RobustSide {
  double rho;
  double rows;
  double unmatched;

  [[nodiscard]] double spread() const { return rho * rows; }

  /// The share of its rows that it may leave out: leaving out f of them needs a spread of f/(1-f).
  [[nodiscard]] double left_out() const { return rho >= 0 ? spread() / (1 + spread()) : unmatched; }
};

// A side may leave out its share; the larger of two sides also those rows for which the other one has no partner left.
transport::MarginalPolicy relaxed(const RobustSide& side, const RobustSide& other) {
  if (side.rho == 0) return transport::Exact{};
  if (side.rho > 0) return transport::Ball{.spread = side.spread()};
  const double partners = (1 - other.left_out()) * other.rows;
  const double left_out = std::max(side.left_out(), 1 - partners / side.rows);
  return transport::Ball{.spread = left_out / (1 - left_out)};
}

}  // namespace

void validate(const FitOptions& options) {
  require(positive(options.epsilon.value), "epsilon", options.epsilon.value, "> 0");
  require(options.epsilon_start == 0 || positive(options.epsilon_start), "epsilon_start", options.epsilon_start,
          "0 (off) or > 0");
  if (options.method == Method::robot_robust) {
    require(options.unmatched > 0 && options.unmatched < 1, "unmatched", options.unmatched, "> 0 and < 1");
    require(!std::isnan(options.rho1), "rho1", options.rho1, ">= 0, or negative to use unmatched");
    require(!std::isnan(options.rho2), "rho2", options.rho2, ">= 0, or negative to use unmatched");
    require(options.rho1 != 0 || options.rho2 != 0, "rho2", options.rho2, "> 0 where rho1 = 0");
  }
  require(options.starts >= 0, "starts", options.starts, ">= 0");
  require(options.start_confidence >= 0 && options.start_confidence < 1, "start_confidence", options.start_confidence,
          ">= 0 and < 1");
  require(options.max_iterations >= 0, "max_iterations", options.max_iterations, ">= 0");
  require(positive(options.learning_rate), "learning_rate", options.learning_rate, "> 0");
  require(options.momentum >= 0 && options.momentum < 1, "momentum", options.momentum, ">= 0 and < 1");
  require(options.batch >= 0, "batch", static_cast<double>(options.batch), ">= 0");
  const bool am_batches = options.method == Method::am && options.am_step == MatchedStep::gradient;
  require(options.batch == 0 || am_batches || options.optimizer == Optimizer::momentum ||
              options.optimizer == Optimizer::adam,
          "batch", static_cast<double>(options.batch), "0 unless the optimizer is momentum or adam");
  require(positive(options.tolerance), "tolerance", options.tolerance, "> 0");
  require(options.accuracy >= 1e-12 && options.accuracy <= 1e-2, "accuracy", options.accuracy, "within 1e-12 .. 1e-2");
  require(positive(options.gradient_tolerance), "gradient_tolerance", options.gradient_tolerance, "> 0");
  require(options.threads >= 0, "threads", options.threads, ">= 0");
  require(options.em_chains >= 1, "em_chains", options.em_chains, ">= 1");
  require(positive(options.em_swaps), "em_swaps", options.em_swaps, "> 0");
  require(positive(options.rr_threshold), "rr_threshold", options.rr_threshold, "> 0");
  require(options.rs_samples >= 1, "rs_samples", static_cast<double>(options.rs_samples), ">= 1");
  require(positive(options.rs_threshold), "rs_threshold", options.rs_threshold, "> 0");
  require(options.gw_slices >= 1, "gw_slices", options.gw_slices, ">= 1");
  require(positive(options.gw_epsilon), "gw_epsilon", options.gw_epsilon, "> 0");
  require(options.unroll >= 1, "unroll", options.unroll, ">= 1");
  require(options.bootstrap == 0 || options.bootstrap >= 2, "bootstrap", options.bootstrap, "0 or >= 2");
  require(options.known_noise_sd == 0 || positive(options.known_noise_sd), "known_noise_sd", options.known_noise_sd,
          "0 (not known) or > 0");
}

FitOptions with_paper_settings(FitOptions options, Index rows, bool linear_in_parameters) {
  options.optimizer = Optimizer::momentum;
  options.am_step = MatchedStep::gradient;
  options.learning_rate = 1e-4;
  options.epsilon = {.value = 1e-4, .relative = true};
  options.epsilon_start = 0;
  options.max_iterations = linear_in_parameters ? 2000 : 80;
  options.batch = 500;
  if (!linear_in_parameters) {
    options.batch = rows <= 100 ? 10 : rows <= 200 ? 30 : rows <= 500 ? 50 : rows <= 1000 ? 100 : 300;
  }
  return options;
}

namespace {

/// Its links, where it has any, are one to one; rows beyond that have no partner.
bool has_likelihood(Method method) {
  return method == Method::automatic || method == Method::mixture || method == Method::adjusted ||
         method == Method::entropic;
}

}  // namespace

EvaluatorOptions evaluator_options(const FitOptions& options, const Problem& problem) {
  EvaluatorOptions made =
      evaluator_options(options, static_cast<double>(problem.responses()), static_cast<double>(problem.features()));
  if (has_likelihood(options.method)) made.response_side = made.feature_side = transport::Sampled{};
  return made;
}

EvaluatorOptions evaluator_options(const FitOptions& options, double responses, double features) {
  EvaluatorOptions made;
  made.objective = options.objective;
  made.epsilon = options.epsilon;
  made.tolerance = options.tolerance;
  made.accuracy = options.accuracy;
  made.backend = options.backend;
  if (options.method == Method::robot_robust) {
    const RobustSide response_side{options.rho1, responses, options.unmatched};
    const RobustSide feature_side{options.rho2, features, options.unmatched};
    made.response_side = relaxed(response_side, feature_side);
    made.feature_side = relaxed(feature_side, response_side);
  }
  return made;
}

}  // namespace unshuffle
