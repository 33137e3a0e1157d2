// Minimisers of a smooth function of a few to a few thousand coordinates. None of them knows about transport.
#pragma once

#include <functional>
#include <limits>
#include <string>

#include "unshuffle/core/types.hpp"
#include "unshuffle/optimise/descent_options.hpp"

namespace unshuffle {

struct Sample {
  double value = 0;
  Vector gradient;
  Matrix hessian;  ///< Empty unless asked for.
};

using SmoothFunction = std::function<Sample(const Vector& at, bool with_hessian)>;

/// Called once per iteration with the accepted point; returns false to stop.
using Watch = std::function<bool(int iteration, const Sample& here, double gradient_norm)>;

struct StopRule {
  int max_iterations = 200;
  double gradient_tolerance = 1e-6;  ///< On ‖∇‖ (its part along the ball's surface where the ball stops the descent).
  double noise = 1e-10;              ///< Relative accuracy of values; smaller gains do not count.
  double noise_floor = 0;            ///< The same, absolute; the larger one applies.
  double radius = std::numeric_limits<double>::infinity();  ///< Stay within ‖u‖ ≤ radius.
};

struct Minimum {
  Vector at;
  double value = 0;
  double gradient_norm = 0;
  int iterations = 0;
  bool converged = false;
  bool on_boundary = false;  ///< The ball stopped the descent in some direction.
  bool stopped = false;      ///< On request of the watch.
  std::string message;
};

/// u ← u + v, v ← momentum·v - rate·∇, as in the paper. Iterates are projected on the ball.
[[nodiscard]] Minimum momentum_descent(const SmoothFunction& f, const Vector& start, const StopRule& stop,
                                       const StepOptions& step, const Watch& watch);

/// Adam (Kingma & Ba 2015) with its usual decay rates.
[[nodiscard]] Minimum adam(const SmoothFunction& f, const Vector& start, const StopRule& stop, const StepOptions& step,
                           const Watch& watch);

/// L-BFGS with a strong-Wolfe line search (Nocedal & Wright 2006, chapter 7 and algorithm 3.5).
[[nodiscard]] Minimum lbfgs(const SmoothFunction& f, const Vector& start, const StopRule& stop, const Watch& watch);

/// Newton's method in a trust region; the dense Hessian is decomposed, so it may be indefinite.
[[nodiscard]] Minimum trust_region(const SmoothFunction& f, const Vector& start, const StopRule& stop,
                                   const Watch& watch);

/// Size of the usable gradient: on the ball's surface only the tangential part counts when the descent points outward.
[[nodiscard]] double free_gradient_norm(const Vector& at, const Vector& gradient, double radius);

/// minimises c·v + ½ Σ λ_k v_k² over ‖v‖ ≤ radius, in the eigenvectors' coordinates, λ ascending.
[[nodiscard]] Vector minimise_quadratic_in_ball(const Vector& eigenvalues, const Vector& c, double radius);

}  // namespace unshuffle
