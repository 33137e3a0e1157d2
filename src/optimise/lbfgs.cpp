#include <algorithm>
#include <cmath>
#include <deque>

#include "optimise/optimiser.hpp"

namespace unshuffle {

namespace {

struct Pair {
  Vector step;
  Vector change;  ///< Of the gradient.
  double product;
};

/// -H·gradient by the two-loop recursion.
Vector direction(const std::deque<Pair>& pairs, const Vector& gradient) {
  Vector q = -gradient;
  std::vector<double> alpha(pairs.size());
  for (std::size_t k = pairs.size(); k-- > 0;) {
    alpha[k] = pairs[k].step.dot(q) / pairs[k].product;
    q -= alpha[k] * pairs[k].change;
  }
  if (!pairs.empty()) q *= pairs.back().product / pairs.back().change.squaredNorm();
  for (std::size_t k = 0; k < pairs.size(); ++k) {
    q += (alpha[k] - pairs[k].change.dot(q) / pairs[k].product) * pairs[k].step;
  }
  return q;
}

struct LinePoint {
  double length = 0;
  double value = 0;
  double slope = 0;
  Sample sample;
};

/// Minimiser of the cubic through two points with slopes, kept away from both ends.
double cubic_between(const LinePoint& a, const LinePoint& b) {
  const double width = b.length - a.length;
  const double d1 = a.slope + b.slope - 3 * (b.value - a.value) / width;
  const double inner = d1 * d1 - a.slope * b.slope;
  double at = 0.5;
  if (inner >= 0) {
    const double d2 = std::copysign(std::sqrt(inner), width);
    const double share = 1 - (b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2);
    if (std::isfinite(share)) at = share;
  }
  return a.length + std::clamp(at, 0.1, 0.9) * width;
}

// Strong Wolfe conditions: value ≤ value₀ + c₁·length·slope₀ and |slope| ≤ c₂|slope₀|. Near the minimum the first one
// is lost in the rounding of the value, so a point also passes if its value is within that rounding of value₀ and its
// slope lies in the interval that the first condition implies for a parabola (Hager & Zhang 2005).
class LineSearch {
 public:
  LineSearch(const SmoothFunction& f, const Vector& origin, const Vector& along, LinePoint start, double trusted)
      : f_(f), origin_(origin), along_(along), start_(std::move(start)), trusted_(trusted) {}

  /// The accepted point, or the best seen when none passes; length 0 when nothing is better than the start.
  LinePoint search(double first_length) {
    LinePoint before = start_;
    LinePoint best = start_;
    double length = first_length;
    for (int trial = 0; trial < 25; ++trial) {
      LinePoint here = evaluate(length);
      if (!std::isfinite(here.value) || !here.sample.gradient.allFinite()) {
        length = 0.5 * (before.length + length);
        continue;
      }
      if (passes(here)) return here;
      if (here.value < best.value) best = here;
      if (too_high(here) || (trial > 0 && here.value >= before.value)) return zoom(before, here, best);
      if (here.slope >= 0) return zoom(here, before, best);
      before = here;
      length *= 2.5;
    }
    return best;
  }

 private:
  [[nodiscard]] LinePoint evaluate(double length) const {
    LinePoint here;
    here.length = length;
    here.sample = f_(origin_ + length * along_, false);
    here.value = here.sample.value;
    here.slope = here.sample.gradient.dot(along_);
    return here;
  }

  [[nodiscard]] bool too_high(const LinePoint& here) const {
    return here.value > start_.value + c1 * here.length * start_.slope;
  }

  [[nodiscard]] bool passes(const LinePoint& here) const {
    if (!too_high(here) && std::abs(here.slope) <= c2 * std::abs(start_.slope)) return true;
    return here.value <= start_.value + trusted_ && (2 * c1 - 1) * start_.slope >= here.slope &&
           here.slope >= c2 * start_.slope;
  }

  LinePoint zoom(LinePoint low, LinePoint high, LinePoint best) {
    for (int trial = 0; trial < 30; ++trial) {
      LinePoint here = evaluate(cubic_between(low, high));
      if (passes(here)) return here;
      if (here.value < best.value) best = here;
      if (too_high(here) || here.value >= low.value) {
        high = std::move(here);
      } else {
        if (here.slope * (high.length - low.length) >= 0) high = low;
        low = std::move(here);
      }
      if (std::abs(high.length - low.length) <= 1e-14 * std::max(low.length, high.length)) break;
    }
    return best;
  }

  static constexpr double c1 = 1e-4;
  static constexpr double c2 = 0.9;
  const SmoothFunction& f_;
  const Vector& origin_;
  const Vector& along_;
  LinePoint start_;
  double trusted_;
};

// u = R v/√(1 + |v|²) maps all of space onto the open ball ‖u‖ < R, so a descent in v needs no constraint.
struct BallMap {
  double radius;

  [[nodiscard]] Vector inside(const Vector& v) const { return radius / std::sqrt(1 + v.squaredNorm()) * v; }
  [[nodiscard]] Vector outside(const Vector& u) const {
    const double share = std::min(u.squaredNorm() / (radius * radius), 1 - 1e-6);
    return u / (radius * std::sqrt(1 - share));
  }
  [[nodiscard]] Vector gradient(const Vector& v, const Vector& g) const {
    const double s = 1 + v.squaredNorm();
    return radius / std::sqrt(s) * (g - v * (v.dot(g) / s));
  }
};

Minimum lbfgs_in_space(const SmoothFunction& f, const Vector& start, const StopRule& stop, const Watch& watch) {
  constexpr std::size_t memory = 10;
  constexpr double smallest = std::numeric_limits<double>::min();
  std::deque<Pair> pairs;
  Minimum minimum;
  minimum.at = start;
  Sample here = f(start, false);
  for (;; ++minimum.iterations) {
    minimum.value = here.value;
    const double trusted = std::max({stop.noise * std::abs(here.value), stop.noise_floor, smallest});
    minimum.gradient_norm = here.gradient.norm();
    minimum.stopped = !watch(minimum.iterations, here, minimum.gradient_norm);
    minimum.converged = minimum.gradient_norm <= stop.gradient_tolerance;
    if (minimum.stopped || minimum.converged || minimum.iterations >= stop.max_iterations) break;

    Vector along = direction(pairs, here.gradient);
    if (!(along.dot(here.gradient) < 0)) {
      pairs.clear();
      along = -here.gradient;
    }
    const double first = pairs.empty() ? std::min(1.0, 1 / minimum.gradient_norm) : 1.0;
    const LinePoint begin{0, here.value, along.dot(here.gradient), {}};
    LinePoint found = LineSearch(f, minimum.at, along, begin, trusted).search(first);
    if (found.length == 0 && !pairs.empty()) {  // the memory may be stale: once more along the gradient
      pairs.clear();
      continue;
    }
    if (found.length == 0) {
      minimum.converged = -begin.slope * first <= 1e3 * trusted;
      minimum.message = "the line search found nothing lower";
      return minimum;
    }
    Pair pair{found.length * along, found.sample.gradient - here.gradient, 0};
    pair.product = pair.step.dot(pair.change);
    if (pair.product > 1e-12 * pair.step.norm() * pair.change.norm()) pairs.push_back(std::move(pair));
    if (pairs.size() > memory) pairs.pop_front();
    minimum.at += found.length * along;
    here = std::move(found.sample);
  }
  minimum.message = minimum.stopped     ? "stopped on request"
                    : minimum.converged ? "gradient below its tolerance"
                                        : "iterations ran out before the gradient fell below its tolerance";
  return minimum;
}

}  // namespace

Minimum lbfgs(const SmoothFunction& f, const Vector& start, const StopRule& stop, const Watch& watch) {
  if (std::isinf(stop.radius)) return lbfgs_in_space(f, start, stop, watch);
  const BallMap ball{stop.radius};
  const auto mapped = [&](const Vector& v, bool) {
    Sample sample = f(ball.inside(v), false);
    sample.gradient = ball.gradient(v, sample.gradient);
    return sample;
  };
  Minimum minimum = lbfgs_in_space(mapped, ball.outside(start), stop, watch);
  minimum.at = ball.inside(minimum.at);
  minimum.on_boundary = minimum.at.norm() >= 0.99 * stop.radius;
  return minimum;
}

}  // namespace unshuffle
