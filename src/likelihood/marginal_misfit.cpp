#include "likelihood/marginal_misfit.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace unshuffle {

namespace {

constexpr double chance_limit = 2.2;  // 2 exp(-2 λ²) = 1.2e-4
constexpr Index places = 128;         // at which distribution functions are compared
constexpr Index strata = 2048;        // of equally many predictors, each represented by its mean

Vector sorted(const VectorRef& values) {
  Vector made = values;
  std::sort(made.begin(), made.end());
  return made;
}

/// Means of equally many neighbours, with the number of them.
std::vector<std::pair<double, Index>> stratified(const Vector& ascending) {
  const Index n = ascending.size(), parts = std::min(n, strata);
  std::vector<std::pair<double, Index>> made;
  for (Index k = 0; k < parts; ++k) {
    const Index begin = n * k / parts, end = n * (k + 1) / parts;
    made.emplace_back(ascending.segment(begin, end - begin).mean(), end - begin);
  }
  return made;
}

}  // namespace

double marginal_misfit(const Family& family, const Shape& shape, const VectorRef& y, const VectorRef& eta) {
  const Vector responses = sorted(y);
  const auto predictors = stratified(sorted(eta));
  const auto n = double(responses.size()), m = double(eta.size());
  double largest = 0;
  for (Index k = 0; k < std::min(places, responses.size()); ++k) {
    const double at = responses(responses.size() * k / std::min(places, responses.size()));
    const double observed = double(std::upper_bound(responses.begin(), responses.end(), at) - responses.begin()) / n;
    double expected = 0;
    for (const auto& [predictor, count] : predictors)
      expected += double(count) * family.cumulative({at, predictor}, shape);
    largest = std::max(largest, std::abs(observed - expected / m));
  }
  // With as many features as responses these are all that there are, not a sample.
  const double rows = n == m ? n : n * m / (n + m);
  return largest * std::sqrt(rows) / chance_limit;
}

}  // namespace unshuffle
