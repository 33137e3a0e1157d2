#include "likelihood/clutter.hpp"

#include <Eigen/Geometry>
#include <algorithm>
#include <cmath>
#include <numbers>

namespace unshuffle {

namespace {

/// The activity of a link between n and m rows of which k are linked: K where it is the same for all pairs.
double activity(double n, double m, double k) { return k / ((n - k + 1) * (m - k + 1)); }

}  // namespace

double TwoClouds::variance() const {
  return (y.rowwise() - y.colwise().mean()).squaredNorm() / static_cast<double>(y.size());
}

TwoClouds two_clouds(Matrix y, Matrix z) {
  TwoClouds made{std::move(y), std::move(z), 1};
  const double n = static_cast<double>(made.y.rows());
  const Vector widths = (made.y.colwise().maxCoeff() - made.y.colwise().minCoeff()).transpose() * ((n + 1) / (n - 1));
  for (const double width : widths) made.volume *= std::max(width, 1e-6 * widths.maxCoeff());
  return made;
}

ClutterFit::ClutterFit(const TwoClouds& clouds, const SpatialMap& map, const Fixed& fixed, Pose start)
    : clouds_(clouds),
      map_(map),
      fixed_(fixed),
      pose_(std::move(start)),
      least_variance_(1e-12 * clouds.variance()),
      feature_alone_(Vector::Constant(clouds.z.rows(), 0.5)) {
  if (fixed_.links > 0) pose_.links = fixed_.links;
  pose_.links = std::min(pose_.links, static_cast<double>(std::min(clouds.y.rows(), clouds.z.rows())));
}

void ClutterFit::expect() {
  const Matrix moved = pose_.transform.of(clouds_.z);
  const double dimension = static_cast<double>(moved.cols());
  squares_.resize(clouds_.y.rows(), moved.rows());
  for (Index j = 0; j < moved.rows(); ++j) {
    auto column = squares_.col(j).array();
    column = (clouds_.y.col(0).array() - moved(j, 0)).square();
    for (Index o = 1; o < moved.cols(); ++o) column += (clouds_.y.col(o).array() - moved(j, o)).square();
  }
  const double n = static_cast<double>(clouds_.y.rows()), m = static_cast<double>(clouds_.z.rows());
  const double log_scale = std::log(activity(n, m, pose_.links) * clouds_.volume) -
                           0.5 * dimension * std::log(2 * std::numbers::pi * pose_.variance);
  constexpr double least = -300;  // nothing is denormal
  links_ = (log_scale - squares_.array() / (2 * pose_.variance)).max(least).exp();
  constexpr int sweeps = 3;  // they go on from the last step's
  for (int sweep = 0; sweep < sweeps; ++sweep) {
    response_alone_ = (1 + (links_ * feature_alone_).array()).inverse();
    feature_alone_ = (1 + (links_.transpose() * response_alone_).array()).inverse();
  }
  links_ = response_alone_.asDiagonal() * links_ * feature_alone_.asDiagonal();
}

/// log Z = -Σ log r - Σ log s - ΣP in the mean field, less that of as many links between any rows.
double ClutterFit::nats() const {
  const double n = static_cast<double>(clouds_.y.rows()), m = static_cast<double>(clouds_.z.rows()), k = pose_.links;
  const double found = -response_alone_.array().log().sum() - feature_alone_.array().log().sum() - links_.sum();
  const double anywhere = n * std::log(n / (n - k + 1)) + m * std::log(m / (m - k + 1)) - k;
  return found - anywhere;
}

/// Σ P|y - f|² at the new map, about the targets as before and the targets' own, over its degrees of freedom: a map
/// that goes through a few points exactly tells nothing of the noise.
double ClutterFit::estimated_variance(const SpatialTransform& before, const Matrix& targets,
                                      const Vector& of_features) const {
  if (fixed_.noise_variance > 0) return fixed_.noise_variance;
  const double free = of_features.sum() * static_cast<double>(targets.cols()) - static_cast<double>(map_.parameters());
  if (!(free > 1)) return pose_.variance;
  const double about =
      links_.cwiseProduct(squares_).sum() - of_features.dot((targets - before.of(clouds_.z)).rowwise().squaredNorm());
  const double left = of_features.dot((targets - pose_.transform.of(clouds_.z)).rowwise().squaredNorm());
  return std::max(least_variance_, (std::max(0.0, about) + left) / free);
}

double ClutterFit::step(double variance) {
  if (variance > 0) pose_.variance = std::max(variance, fixed_.noise_variance);
  expect();
  pose_.nats = nats();
  const Vector of_features = links_.colwise().sum().transpose();
  const double total = of_features.sum();
  const double n = static_cast<double>(clouds_.y.rows()), m = static_cast<double>(clouds_.z.rows());
  if (!(total > static_cast<double>(clouds_.y.cols()))) return 0;
  const Matrix targets = of_features.cwiseMax(1e-300).cwiseInverse().asDiagonal() * (links_.transpose() * clouds_.y);
  const SpatialTransform before = pose_.transform;
  pose_.transform = map_.fitted(clouds_.z, targets, of_features);
  if (fixed_.links == 0) pose_.links = std::clamp(total, 1.0, std::min(n, m));
  if (variance == 0) pose_.variance = estimated_variance(before, targets, of_features);
  return (pose_.transform.of(clouds_.z) - before.of(clouds_.z)).norm() / std::sqrt(m);
}

std::vector<Matrix> spread_rotations(Index dimension, Index count) {
  std::vector<Matrix> made;
  const double n = static_cast<double>(count);
  for (Index k = 0; k < count; ++k) {
    if (dimension == 2) {
      made.push_back(rotation(Vector::Constant(1, 2 * std::numbers::pi * static_cast<double>(k) / n)));
      continue;
    }
    // Alexa, Super-Fibonacci spirals, CVPR 2022.
    const double s = static_cast<double>(k) + 0.5, inner = std::sqrt(s / n), outer = std::sqrt(1 - s / n);
    const double alpha = 2 * std::numbers::pi * s / std::numbers::sqrt2;
    const double beta = 2 * std::numbers::pi * s / 1.533751168755204288118041;
    const Eigen::Quaterniond turn(outer * std::cos(beta), inner * std::sin(alpha), inner * std::cos(alpha),
                                  outer * std::sin(beta));
    made.emplace_back(turn.toRotationMatrix());
  }
  return made;
}

}  // namespace unshuffle
