#include "transport/line.hpp"

#include <cmath>

namespace unshuffle::transport {
namespace {

/// The concave hull of (position, value), evaluated at every position.
Vector concave_hull(const VectorRef& position, Vector value) {
  const Index n = position.size();
  std::vector<Index> hull;
  for (Index k = 0; k < n; ++k) {
    // Drop the last vertex while it lies below the chord from the one before it to k.
    while (hull.size() >= 2) {
      const Index a = hull[hull.size() - 2], b = hull.back();
      const double across = (value[k] - value[a]) * (position[b] - position[a]);
      if ((value[b] - value[a]) * (position[k] - position[a]) > across) break;
      hull.pop_back();
    }
    // Of several sources at one position only the largest affects the hull.
    if (!hull.empty() && position[hull.back()] == position[k]) {
      if (value[hull.back()] >= value[k]) continue;
      hull.pop_back();
    }
    hull.push_back(k);
  }
  for (Index k = 0; k < hull.front(); ++k) value[k] = value[hull.front()];  // tied with it at the first position
  for (std::size_t h = 0; h < hull.size(); ++h) {
    const Index a = hull[h], b = h + 1 < hull.size() ? hull[h + 1] : n;
    const double slope = b < n ? (value[b] - value[a]) / (position[b] - position[a]) : 0;
    for (Index k = a + 1; k < b; ++k) value[k] = std::max(value[k], value[a] + slope * (position[k] - position[a]));
  }
  return value;
}

}  // namespace

Windows windows_of(const VectorRef& targets, const LineMeasure& sources, const VectorRef& potential, double epsilon,
                   double depth) {
  const Index m = sources.size();
  // Centring keeps the squares small; it changes φ_j + 2ts_j/ε by terms that do not depend on j.
  const double centre = 0.5 * (sources.position[0] + sources.position[m - 1]);
  Vector s = sources.position.array() - centre;
  Vector hull = concave_hull(s, potential.array() + sources.weight.array().log() - s.array().square() / epsilon);
  Windows windows;
  windows.begin.resize(static_cast<std::size_t>(targets.size()));
  windows.end.resize(windows.begin.size());
  Index first = 0, peak = 0, last = 0;
  for (Index i = 0; i < targets.size(); ++i) {
    const double slope = 2 * (targets[i] - centre) / epsilon;
    auto entry = [&](Index j) { return hull[j] + slope * s[j]; };
    while (peak + 1 < m && entry(peak + 1) >= entry(peak)) ++peak;
    const double floor = entry(peak) - depth;
    while (entry(first) < floor) ++first;
    last = std::max(last, peak);
    while (last + 1 < m && entry(last + 1) >= floor) ++last;
    windows.begin[static_cast<std::size_t>(i)] = static_cast<int>(first);
    windows.end[static_cast<std::size_t>(i)] = static_cast<int>(last + 1);
  }
  return windows;
}

Vector log_sums(const VectorRef& targets, const LineMeasure& sources, const VectorRef& potential, double epsilon) {
  const Windows windows = windows_of(targets, sources, potential, epsilon);
  Vector sums(targets.size());
  Eigen::ArrayXd entry;
  for (Index i = 0; i < targets.size(); ++i) {
    const Index begin = windows.begin[static_cast<std::size_t>(i)];
    const Index length = windows.end[static_cast<std::size_t>(i)] - begin;
    entry = potential.segment(begin, length).array() -
            (targets[i] - sources.position.segment(begin, length).array()).square() / epsilon;
    const double largest = entry.maxCoeff();
    sums[i] = largest + std::log(((entry - largest).exp() * sources.weight.segment(begin, length).array()).sum());
  }
  return sums;
}

Vector monotone_potentials(const LineMeasure& targets, const LineMeasure& sources, double epsilon) {
  const double target_mass = targets.weight.sum(), source_mass = sources.weight.sum();
  Vector potential(sources.size());
  potential[0] = 0;
  Index i = 0;
  double below = targets.weight[0] / target_mass, passed = 0;
  for (Index j = 0; j + 1 < sources.size(); ++j) {
    passed += sources.weight[j] / source_mass;
    while (i + 1 < targets.size() && below < passed * (1 - 1e-12)) below += targets.weight[++i] / target_mass;
    // Where both sides change at once the matching is undetermined between two rows: take the middle.
    const bool tie = i + 1 < targets.size() && below <= passed * (1 + 1e-12);
    const double t = tie ? 0.5 * (targets.position[i] + targets.position[i + 1]) : targets.position[i];
    const double s = sources.position[j], next = sources.position[j + 1];
    potential[j + 1] = potential[j] + (next - s) * (next + s - 2 * t) / epsilon;
  }
  return potential;
}

}  // namespace unshuffle::transport
