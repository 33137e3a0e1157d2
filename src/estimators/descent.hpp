// One start taken downhill: ε schedule, coordinates, optimiser, trace.
#pragma once

#include <functional>
#include <vector>

#include "optimise/optimiser.hpp"
#include "starts/starts.hpp"
#include "unshuffle/estimators/result.hpp"
#include "unshuffle/objective/evaluator.hpp"

namespace unshuffle {

// Descents (docs/mathematics.md §14) run in coordinates u with w = origin + T u, in which one unit of u matters about
// equally in all directions:
// T is diagonal with the natural steps of the parameters, and a gradient of size one means one unit of the objective
// (n·Var(y), the value of a constant prediction). A start with covariance Σ sets T Tᵀ = Σ instead; u is then in
// standard errors, the start's confidence region is a ball, and the unit of the objective is n·σ².
struct Coordinates {
  Vector origin;
  Matrix transform;
  double radius;  ///< Of the ball to stay in; infinite when the uncertainty of the start is unknown.
  double unit;    ///< Of the objective.

  [[nodiscard]] Vector to_parameters(const Vector& u) const { return origin + transform * u; }
};
[[nodiscard]] Coordinates coordinates_for(const Start& start, const Problem& problem, const Model& bound,
                                          double start_confidence);

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

/// What all descents of a fit have in common.
struct DescentTask {
  const Problem& problem;
  const Model& bound;
  EvaluatorOptions evaluator;  ///< ε in the unit of the cost. Processes of its team descend from the same start.
  DescentOptions options;      ///< Likewise.
  int max_iterations = 0;      ///< Per stage of ε; 0 chooses by optimiser.
  std::uint64_t seed = 0;
  OuterObjective objective{};  ///< Minimised instead of the evaluator's objective, if given.
};

[[nodiscard]] Descended descend(const DescentTask& task, const Start& start, int index, const Tick& tick);

/// Outer iterations allowed per stage.
[[nodiscard]] int iteration_limit(const DescentTask& task);

}  // namespace unshuffle
