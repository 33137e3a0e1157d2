#include "core/cubic_spline.hpp"

#include <algorithm>
#include <array>

namespace unshuffle {
namespace {

constexpr Index degree = 3;

/// The value at a share of the way through sorted numbers, linearly between neighbours.
double quantile(const std::vector<double>& sorted, double share) {
  const double position = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (position - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

/// Knot i of the sequence with both ends repeated `degree` more times.
double knot(const std::vector<double>& breakpoints, Index i) {
  const Index last = static_cast<Index>(breakpoints.size()) - 1;
  return breakpoints[static_cast<std::size_t>(std::clamp<Index>(i - degree, 0, last))];
}

/// Values and slopes of the four cubic B-splines that do not vanish on [breakpoint_span, breakpoint_span+1).
struct LocalBasis {
  std::array<double, degree + 1> value;
  std::array<double, degree + 1> slope;
};

// Cox-de Boor: with span s (knot index μ = s + 3), the functions of degree k come from those of degree k-1,
//   B_{i,k}(t) = (t - τ_i)/(τ_{i+k} - τ_i) B_{i,k-1}(t) + (τ_{i+k+1} - t)/(τ_{i+k+1} - τ_{i+1}) B_{i+1,k-1}(t),
// and the slope of the last degree is  B'_{i,3} = 3 [B_{i,2}/(τ_{i+3} - τ_i) - B_{i+1,2}/(τ_{i+4} - τ_{i+1})].
LocalBasis local_basis(const std::vector<double>& breakpoints, Index span, double t) {
  const Index mu = span + degree;
  LocalBasis local{};
  std::array<double, degree + 1> lower{};
  local.value[0] = 1.0;
  for (Index k = 1; k <= degree; ++k) {
    lower = local.value;
    local.value.fill(0.0);
    for (Index r = 0; r < k; ++r) {  // lower[r] is B_{mu-k+1+r, k-1}
      const double left = knot(breakpoints, mu - k + 1 + r);
      const double width = knot(breakpoints, mu + 1 + r) - left;
      const auto at = static_cast<std::size_t>(r);
      local.value[at + 1] += (t - left) / width * lower[at];
      local.value[at] += (left + width - t) / width * lower[at];
    }
  }
  for (Index r = 0; r < degree; ++r) {  // lower holds degree 2
    const double width = knot(breakpoints, mu + 1 + r) - knot(breakpoints, mu - degree + 1 + r);
    const auto at = static_cast<std::size_t>(r);
    local.slope[at + 1] += degree * lower[at] / width;
    local.slope[at] -= degree * lower[at] / width;
  }
  return local;
}

Index span_of(const std::vector<double>& breakpoints, double t) {
  const auto above = std::upper_bound(breakpoints.begin() + 1, breakpoints.end() - 1, t);
  return above - breakpoints.begin() - 1;
}

}  // namespace

std::vector<double> spline_breakpoints(const VectorRef& values, int between) {
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  std::vector<double> breakpoints{sorted.front()};
  for (int k = 1; k <= between; ++k) {
    const double at = quantile(sorted, static_cast<double>(k) / (between + 1));
    if (at > breakpoints.back() && at < sorted.back()) breakpoints.push_back(at);
  }
  breakpoints.push_back(sorted.back());
  return breakpoints;
}

Matrix cubic_splines(const std::vector<double>& breakpoints, const VectorRef& values) {
  Matrix splines = Matrix::Zero(values.size(), static_cast<Index>(breakpoints.size()) + 2);
  for (Index i = 0; i < values.size(); ++i) {
    const double t = std::clamp(values(i), breakpoints.front(), breakpoints.back());
    const Index span = span_of(breakpoints, t);
    const LocalBasis local = local_basis(breakpoints, span, t);
    for (Index r = 0; r <= degree; ++r) {
      const auto at = static_cast<std::size_t>(r);
      splines(i, span + r) = local.value[at] + (values(i) - t) * local.slope[at];
    }
  }
  return splines;
}

}  // namespace unshuffle
