#include "likelihood/profile.hpp"

#include <Eigen/Cholesky>
#include <cmath>
#include <limits>

#include "core/in_parallel.hpp"
#include "core/normal.hpp"

namespace unshuffle {

// Where N is not a parabola, its curvature at the optimum misleads: fully shuffled data leave valleys that bend and
// widen. The profile N_k(c) = min {N(θ) : θ_k = c} is followed instead, from the optimum N̂ outward to where
//   r(c) = √(2 (N_k(c) - N̂))
// equals the normal quantile (the interval of Wilks 1938). r is linear in c for a parabola and nearly so otherwise, so
// a few proportional steps find the point; each starts on the line through the last minimum. For an approximate
// likelihood, 2 (N_k - N̂) is approximately χ² times the ratio of the true variance of the error to that by curvature,
// and the quantile is multiplied by its root (Pace, Salvan & Sartori 2011). docs/mathematics.md §9.4.
namespace {

constexpr int most_steps = 8;
constexpr double close_enough = 0.05;  // in r
constexpr double farthest = 20;        // times what the curvature says

class Profile {
 public:
  Profile(LinkLikelihood likelihood, const Optimum& optimum, double level, const Matrix& covariance, Index k,
          double stretch)
      : likelihood_(std::move(likelihood)),
        optimum_(optimum.theta()),
        level_(level),
        quantile_(stretch * normal_quantile),
        spread_(covariance.diagonal().cwiseSqrt()),
        ahead_(covariance.col(k) / covariance(k, k)),
        k_(k) {
    for (Index j = 0; j < optimum_.size(); ++j) {
      if (j != k) free_.push_back(j);
    }
  }

  /// Distance from the optimum at which r is the quantile, towards `sign`.
  double margin(double sign) {
    const double by_curvature = quantile_ * spread_(k_);
    double distance = by_curvature;
    Vector direction = sign * ahead_;
    for (int step = 0; step < most_steps; ++step) {
      const Minimum lowest = minimum_across(optimum_ + distance * direction);
      const double r = std::sqrt(std::max(0.0, 2 * (lowest.value - level_)));
      if (std::abs(r - quantile_) < close_enough) return distance;
      direction = (placed(optimum_ + distance * direction, lowest.at) - optimum_) / distance;
      distance *= std::clamp(quantile_ / std::max(r, close_enough), 0.5, 2.0);
      if (distance > farthest * by_curvature) break;
    }
    return std::numeric_limits<double>::quiet_NaN();
  }

 private:
  /// The free coordinates of `theta` moved by u standard errors.
  [[nodiscard]] Vector placed(Vector theta, const Vector& u) const {
    theta(free_) += spread_(free_).cwiseProduct(u);
    return theta;
  }

  Minimum minimum_across(const Vector& theta) {
    const SmoothFunction f = [&](const Vector& u, bool with_hessian) {
      const Sample all = likelihood_.at(placed(theta, u), with_hessian);
      const Vector unit = spread_(free_);
      Sample some{all.value, all.gradient(free_).cwiseProduct(unit), {}};
      if (with_hessian) some.hessian = unit.asDiagonal() * Matrix(all.hessian(free_, free_)) * unit.asDiagonal();
      return some;
    };
    StopRule stop;
    stop.max_iterations = 10;
    stop.gradient_tolerance = close_enough;
    stop.noise_floor = 0.1 * close_enough;
    return trust_region(f, Vector::Zero(Index(free_.size())), stop, [](int, const Sample&, double) { return true; });
  }

  LinkLikelihood likelihood_;
  Vector optimum_;
  double level_;  ///< N at the optimum.
  double quantile_;
  Vector spread_;  ///< Standard errors by curvature.
  Vector ahead_;   ///< How the optimum moves with coefficient k, for a parabola.
  Index k_;
  std::vector<Index> free_;
};

}  // namespace

Matrix profile_margins(const std::function<LinkLikelihood()>& likelihood, const Optimum& optimum,
                       const Vector& least_errors) {
  const Index p = optimum.parameters.size();
  LinkLikelihood at_optimum = likelihood();
  const double level = at_optimum.at(optimum.theta(), false).value;
  const Matrix covariance = at_optimum.information(optimum.theta()).llt().solve(Matrix::Identity(p + 1, p + 1));
  Matrix margins(p, 2);
  in_parallel(std::size_t(2 * p), [&](std::size_t at) {
    const auto k = Index(at / 2), side = Index(at % 2);
    const double stretch = std::max(1.0, least_errors(k) / std::sqrt(covariance(k, k)));
    margins(k, side) = Profile(likelihood(), optimum, level, covariance, k, stretch).margin(side == 0 ? -1 : 1);
  });
  return margins;
}

}  // namespace unshuffle
