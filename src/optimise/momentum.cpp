#include <cmath>

#include "optimise/optimiser.hpp"

namespace unshuffle {

namespace {

/// The common frame of both first-order methods; `move` turns a gradient into a step.
template <class Move>
Minimum first_order(const SmoothFunction& f, const Vector& start, const StopRule& stop, const Watch& watch, Move move) {
  Minimum minimum;
  minimum.at = start;
  for (;; ++minimum.iterations) {
    const Sample here = f(minimum.at, false);
    minimum.value = here.value;
    minimum.gradient_norm = free_gradient_norm(minimum.at, here.gradient, stop.radius);
    minimum.stopped = !watch(minimum.iterations, here, minimum.gradient_norm);
    minimum.converged = minimum.gradient_norm <= stop.gradient_tolerance;
    if (minimum.stopped || minimum.converged || minimum.iterations >= stop.max_iterations) break;
    if (!here.gradient.allFinite()) {
      minimum.message = "the gradient is not finite; try a smaller learning rate";
      return minimum;
    }
    minimum.at += move(here.gradient);
    const double size = minimum.at.norm();
    minimum.on_boundary = size >= stop.radius;
    if (minimum.on_boundary) minimum.at *= stop.radius / size;
  }
  minimum.message = minimum.stopped     ? "stopped on request"
                    : minimum.converged ? "gradient below its tolerance"
                                        : "all steps taken before the gradient fell below its tolerance";
  return minimum;
}

}  // namespace

double free_gradient_norm(const Vector& at, const Vector& gradient, double radius) {
  const double size = at.norm();
  if (!(size >= (1 - 1e-9) * radius) || size == 0) return gradient.norm();
  const double outward = -gradient.dot(at) / size;
  if (outward <= 0) return gradient.norm();
  return std::sqrt(std::max(0.0, gradient.squaredNorm() - outward * outward));
}

Minimum momentum_descent(const SmoothFunction& f, const Vector& start, const StopRule& stop, const StepOptions& step,
                         const Watch& watch) {
  Vector velocity = Vector::Zero(start.size());
  return first_order(f, start, stop, watch, [&](const Vector& gradient) -> const Vector& {
    velocity = step.momentum * velocity - step.learning_rate * gradient;
    return velocity;
  });
}

Minimum adam(const SmoothFunction& f, const Vector& start, const StopRule& stop, const StepOptions& step,
             const Watch& watch) {
  constexpr double keep_first = 0.9;
  constexpr double keep_second = 0.999;
  Vector first = Vector::Zero(start.size());
  Vector second = Vector::Zero(start.size());
  double first_left = 1;
  double second_left = 1;
  return first_order(f, start, stop, watch, [&](const Vector& gradient) -> Vector {
    first = keep_first * first + (1 - keep_first) * gradient;
    second = keep_second * second + (1 - keep_second) * gradient.cwiseAbs2();
    first_left *= keep_first;
    second_left *= keep_second;
    const Eigen::ArrayXd size = (second / (1 - second_left)).array().sqrt() + 1e-8;
    return -step.learning_rate / (1 - first_left) * (first.array() / size).matrix();
  });
}

}  // namespace unshuffle
