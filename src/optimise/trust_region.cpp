#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>

#include "optimise/optimiser.hpp"

namespace unshuffle {

// v(μ) = -c/(λ + μ) minimises the quadratic plus ½μ‖v‖²; ‖v(μ)‖ falls as μ grows, and the constrained minimiser is
// v(μ) with μ = 0 when that is inside and λ ≥ 0, else with ‖v(μ)‖ = radius and μ ≥ -λ₁ (Moré & Sorensen 1983). In the
// hard case c has no part along the lowest eigenvector, ‖v(-λ₁)‖ < radius, and the rest of the length goes along it.
Vector minimise_quadratic_in_ball(const Vector& eigenvalues, const Vector& c, double radius) {
  const auto at = [&](double shift) -> Vector {
    Vector v(c.size());
    for (Index k = 0; k < c.size(); ++k) {
      const double denominator = eigenvalues(k) + shift;
      v(k) = c(k) == 0 || denominator <= 0 ? 0.0 : -c(k) / denominator;
    }
    return v;
  };
  const double scale = std::max(eigenvalues.cwiseAbs().maxCoeff(), std::numeric_limits<double>::min());
  if (eigenvalues(0) > 1e-14 * scale) {
    Vector inside = at(0);
    if (inside.norm() <= radius) return inside;
  }
  double low = std::max(0.0, -eigenvalues(0)) + 1e-14 * scale;
  Vector v = at(low);
  if (v.norm() <= radius) {
    if (std::isinf(radius)) return v;
    const double rest = std::sqrt(std::max(0.0, radius * radius - v.squaredNorm() + v(0) * v(0)));
    v(0) = c(0) > 0 ? -rest : rest;
    return v;
  }
  double high = low + c.norm() / radius;
  for (int step = 0; step < 200 && high - low > 1e-15 * high; ++step) {
    const double middle = high > 4 * low ? std::sqrt(std::max(low, 1e-16 * high) * high) : 0.5 * (low + high);
    (at(middle).norm() > radius ? low : high) = middle;
  }
  return at(high);
}

namespace {

/// The quadratic model of the function at u, in the eigenvectors of its Hessian.
struct LocalModel {
  Vector eigenvalues;
  Matrix vectors;
  Vector gradient;
  Vector centre;  ///< u.

  LocalModel(const Sample& here, const Vector& at) {
    const Eigen::SelfAdjointEigenSolver<Matrix> eigen(here.hessian);
    eigenvalues = eigen.eigenvalues();
    vectors = eigen.eigenvectors();
    gradient = vectors.transpose() * here.gradient;
    centre = vectors.transpose() * at;
  }

  [[nodiscard]] double change(const Vector& step) const {
    return gradient.dot(step) + 0.5 * step.cwiseAbs2().dot(eigenvalues);
  }

  /// Best step within ‖step‖ ≤ reach and ‖u + step‖ ≤ radius.
  [[nodiscard]] Vector step(double reach, double radius) const {
    Vector s = minimise_quadratic_in_ball(eigenvalues, gradient, reach);
    if ((centre + s).norm() <= radius) return s;
    // Both balls matter. With a penalty ½π‖step‖² in place of the first, the best point of the second ball is one
    // more quadratic in a ball, around its centre; the step shortens as π grows.
    const auto penalised = [&](double penalty) -> Vector {
      const Vector shifted = eigenvalues.array() + penalty;
      const Vector c = gradient - shifted.cwiseProduct(centre);
      return minimise_quadratic_in_ball(shifted, c, radius) - centre;
    };
    s = penalised(0);
    if (s.norm() <= reach) return s;
    double low = 0;
    double high = std::max(eigenvalues.cwiseAbs().maxCoeff(), gradient.norm() / reach);
    while (penalised(high).norm() > reach) high *= 4;
    for (int round = 0; round < 50 && high - low > 1e-3 * high; ++round) {
      const double middle = 0.5 * (low + high);
      (penalised(middle).norm() > reach ? low : high) = middle;
    }
    return penalised(high);
  }
};

}  // namespace

Minimum trust_region(const SmoothFunction& f, const Vector& start, const StopRule& stop, const Watch& watch) {
  Minimum minimum;
  minimum.at = start;
  Sample here = f(start, true);
  double reach = std::min(1.0, stop.radius);
  bool moved = true;
  for (;; ++minimum.iterations) {
    minimum.value = here.value;
    const double trusted =
        std::max({stop.noise * std::abs(here.value), stop.noise_floor, std::numeric_limits<double>::min()});
    minimum.gradient_norm = free_gradient_norm(minimum.at, here.gradient, stop.radius);
    minimum.on_boundary = minimum.at.norm() >= (1 - 1e-9) * stop.radius;
    minimum.stopped = moved && !watch(minimum.iterations, here, minimum.gradient_norm);
    if (minimum.stopped || minimum.iterations >= stop.max_iterations || !here.hessian.allFinite()) break;

    const LocalModel model(here, minimum.at);
    // A point of zero gradient is a minimum only where the function is convex, so the search moves on from saddles.
    const Vector step = model.step(reach, stop.radius);
    const double expected = -model.change(step);
    minimum.converged = minimum.gradient_norm <= stop.gradient_tolerance &&
                        (minimum.on_boundary || expected <= std::max(trusted, stop.gradient_tolerance * reach));
    if (minimum.converged) break;
    if (expected <= trusted || step.norm() <= 1e-14 * (1 + minimum.at.norm())) {
      minimum.converged = true;
      minimum.message = "no step gains more than the rounding of the objective";
      return minimum;
    }
    const Vector tried = minimum.at + model.vectors * step;
    Sample there = f(tried, true);
    const double ratio = (here.value - there.value + trusted) / (expected + trusted);
    if (!(ratio > 0.25)) reach = 0.25 * step.norm();
    if (ratio > 0.75 && step.norm() > 0.9 * reach) reach = std::min(2 * reach, 2 * stop.radius);
    moved = ratio > 1e-4 && there.gradient.allFinite();
    if (moved) {
      minimum.at = tried;
      here = std::move(there);
    }
  }
  minimum.message = minimum.stopped     ? "stopped on request"
                    : minimum.converged ? "gradient below its tolerance"
                                        : "iterations ran out before the gradient fell below its tolerance";
  return minimum;
}

}  // namespace unshuffle
