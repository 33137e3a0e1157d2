// One start taken downhill: ε schedule, coordinates, optimiser, trace.
#pragma once

#include <functional>
#include <vector>

#include "optimise/optimiser.hpp"
#include "starts/starts.hpp"
#include "unshuffle/fitted/fit.hpp"

namespace unshuffle {

// Descents run in coordinates u with w = origin + T u, in which one unit of u matters about equally in all directions:
// T is diagonal with the natural steps of the parameters, and a gradient of size one means one unit of the objective
// (n·Var(y), the value of predicting nothing). A start that knows its covariance Σ sets T Tᵀ = Σ instead; u is then in
// standard errors, the start's confidence region is a ball, and the unit of the objective is n·σ².
struct Coordinates {
  Vector origin;
  Matrix transform;
  double radius;  ///< Of the ball to stay in; infinite when the start knows nothing of its quality.
  double unit;    ///< Of the objective.

  [[nodiscard]] Vector to_parameters(const Vector& u) const { return origin + transform * u; }
};
[[nodiscard]] Coordinates coordinates_for(const Start& start, const Problem& problem, const Model& bound,
                                          const FitOptions& options);

/// From epsilon_start down to epsilon by equal factors of about four, at most eight stages; all absolute.
[[nodiscard]] std::vector<double> epsilon_schedule(double epsilon_start, double epsilon);

struct Descended {
  Candidate candidate;
  std::vector<TracePoint> trace;
  int evaluations = 0;
  bool stopped = false;
  bool on_boundary = false;
  double noise_sd = 0;  ///< Of linked rows where it is known, else 0.
};

/// Called after every outer iteration; returns false to stop.
using Tick = std::function<bool()>;

/// Objective and gradient at w for an absolute ε, and the Hessian where it is asked for.
using OuterObjective = std::function<Evaluation(const VectorRef& w, double epsilon, bool with_hessian)>;

/// `options.epsilon` and `epsilon_start` are absolute here. Minimises `objective` where one is given, else what the
/// evaluator computes, which the processes of `options.team` share: then all of them descend from the same start.
[[nodiscard]] Descended descend(const Problem& problem, const Model& bound, const FitOptions& options,
                                const Start& start, int index, const Tick& tick, const OuterObjective& objective = {});

/// Outer iterations allowed per stage.
[[nodiscard]] int iteration_limit(const FitOptions& options);

}  // namespace unshuffle
