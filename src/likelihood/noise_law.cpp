#include "likelihood/noise_law.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace unshuffle {

namespace {

constexpr double heavy_share = 0.02;  // of the t density with three degrees of freedom
constexpr double largest_growth = 1, largest_step = 0.2;
constexpr double reach = 4;  // bandwidths beyond the outermost residual

struct Spread {
  double mean = 0, sd = 0, robust = 0;  // robust: by the quartiles, where they differ and say less
};

Spread spread_of(const Vector& u, const Vector& weights) {
  const double total = weights.sum();
  Spread made;
  made.mean = weights.dot(u) / total;
  made.sd = std::sqrt(weights.dot((u.array() - made.mean).square().matrix()) / total);
  std::vector<Index> order(std::size_t(u.size()));
  std::iota(order.begin(), order.end(), Index{0});
  std::sort(order.begin(), order.end(), [&](Index a, Index b) { return u(a) < u(b); });
  double up_to = 0, lower = u(order.front()), upper = u(order.back());
  bool past_lower = false;
  for (const Index i : order) {
    up_to += weights(i);
    if (!past_lower && up_to >= 0.25 * total) {
      lower = u(i);
      past_lower = true;
    }
    if (up_to >= 0.75 * total) {
      upper = u(i);
      break;
    }
  }
  const double by_quartiles = (upper - lower) / 1.349;
  made.robust = by_quartiles > 0 ? std::min(made.sd, by_quartiles) : made.sd;
  return made;
}

/// Weights of the values shared between the two grid points beside each; sums to one.
Vector binned(const Vector& u, const Vector& weights, double low, double step, Index points) {
  Vector counts = Vector::Zero(points);
  for (Index i = 0; i < u.size(); ++i) {
    const double place = (u(i) - low) / step;
    const Index left = std::clamp<Index>(Index(place), 0, points - 2);
    const double share = std::clamp(place - double(left), 0.0, 1.0);
    counts(left) += weights(i) * (1 - share);
    counts(left + 1) += weights(i) * share;
  }
  return counts / weights.sum();
}

/// The counts convolved with a normal density of this bandwidth.
Vector smoothed(const Vector& counts, double bandwidth, double step) {
  const auto half = static_cast<Index>(4.5 * bandwidth / step) + 1;
  Vector kernel(2 * half + 1);
  for (Index k = -half; k <= half; ++k) kernel(k + half) = std::exp(-0.5 * std::pow(double(k) * step / bandwidth, 2));
  kernel /= kernel.sum() * step;
  Vector density = Vector::Zero(counts.size());
  for (Index k = 0; k < counts.size(); ++k) {
    if (counts(k) == 0) continue;
    const Index first = std::max<Index>(0, k - half), last = std::min(counts.size() - 1, k + half);
    density.segment(first, last - first + 1) += counts(k) * kernel.segment(first - k + half, last - first + 1);
  }
  return density;
}

}  // namespace

Vector levels_of(const Vector& predictions) {
  constexpr double furthest = 2.5;
  const double mean = predictions.mean();
  const double sd = std::sqrt((predictions.array() - mean).square().mean());
  if (!(sd > 0)) return Vector::Zero(predictions.size());
  return ((predictions.array() - mean) / sd).max(-furthest).min(furthest);
}

NoiseLaw::NoiseLaw(const Vector& residual, const Vector& weights) { estimate(residual, weights); }

void NoiseLaw::renew(const Vector& residual, const Vector& level, const Vector& weights) {
  // With x = r² e^(-2b f̃)/v in mean one, the score of b is Σ w f̃ (x - 1) and its slope -2 Σ w f̃² x; far residuals
  // count as three standard deviations.
  const Vector squares = residual.array().square() * (-2 * growth_ * level.array()).exp();
  const double total = weights.sum(), variance = weights.dot(squares) / total;
  if (variance > 0) {
    Vector x = (squares / variance).cwiseMin(9.0);
    x *= total / weights.dot(x);
    const Vector weighted = weights.cwiseProduct(level);
    const double score = weighted.dot((x.array() - 1).matrix());
    const double slope = 2 * weighted.dot(level.cwiseProduct(x)) + 1e-9 * total;
    growth_ =
        std::clamp(growth_ + std::clamp(score / slope, -largest_step, largest_step), -largest_growth, largest_growth);
  }
  estimate(residual.array() * (-growth_ * level.array()).exp(), weights);
}

void NoiseLaw::estimate(const Vector& u, const Vector& weights) {
  const Spread spread = spread_of(u, weights);
  const double least = 1e-9 * std::max(u.cwiseAbs().maxCoeff(), 1e-300);
  const double sd = std::max(spread.sd, least);
  const double bandwidth = std::max(spread.robust * std::pow(std::max(weights.sum(), 4.0), -0.2), least);
  low_ = u.minCoeff() - reach * bandwidth;
  const double width = u.maxCoeff() + reach * bandwidth - low_;
  const Index points = std::clamp<Index>(Index(5 * width / bandwidth), 256, 2000);
  step_ = width / double(points - 1);
  Vector density = smoothed(binned(u, weights, low_, step_, points), std::max(bandwidth, step_), step_);
  for (Index k = 0; k < points; ++k) {
    const double z = (low_ + double(k) * step_ - spread.mean) / sd;
    constexpr double t3_at_zero = 0.36755259694786135;
    const double heavy = t3_at_zero / std::pow(1 + z * z / 3, 2) / sd;
    density(k) = (1 - heavy_share) * density(k) + heavy_share * heavy;
  }
  logs_ = density.array().log();
}

double NoiseLaw::log_density(double u) const {
  const double place = std::clamp((u - low_) / step_, 0.0, double(logs_.size() - 1));
  const Index left = std::min<Index>(Index(place), logs_.size() - 2);
  const double share = place - double(left);
  return (1 - share) * logs_(left) + share * logs_(left + 1);
}

Vector NoiseLaw::log_at(const Vector& residual, const Vector& level) const {
  return Vector::NullaryExpr(residual.size(), [&](Index i) {
    const double shrink = growth_ * level(i);
    return log_density(residual(i) * std::exp(-shrink)) - shrink;
  });
}

Vector NoiseLaw::slope_at(const Vector& residual, const Vector& level) const {
  const double h = 3 * step_;  // wide enough to smooth over the grid's corners
  return Vector::NullaryExpr(residual.size(), [&](Index i) {
    const double scale = std::exp(-growth_ * level(i)), u = residual(i) * scale;
    return (log_density(u + h) - log_density(u - h)) / (2 * h) * scale;
  });
}

}  // namespace unshuffle
