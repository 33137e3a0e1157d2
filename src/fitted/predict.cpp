#include "unshuffle/fitted/predict.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/normal.hpp"
#include "links/linked.hpp"

namespace unshuffle {

Predictions::Interval Predictions::interval(const VectorRef& noise_sds, double level) const {
  const double width = level == 0.95 ? normal_quantile : normal_reach(level);
  const Matrix reach = width * (std_errors.array().square().rowwise() + noise_sds.array().square().transpose()).sqrt();
  return {values - reach, values + reach};
}

namespace {

double trials_of(const VectorRef& trials, Index row) { return trials.size() > 0 ? trials(row) : 1; }

struct UncertainPredictor {
  const Family& family;
  const Shape& shape;
  double eta, error, trials;

  /// P(Y ≤ y), η normal around its estimate: by Gauss and Hermite.
  [[nodiscard]] double cumulative(double y) const {
    static constexpr std::array<double, 4> nodes{0, 1.1544053947399682, 2.3667594107345415, 3.7504397177257425};
    static constexpr std::array<double, 4> weights{16.0 / 35, 0.24012317860501, 0.03075712396758, 0.00054826885597};
    double sum = weights[0] * family.cumulative({y, eta, trials}, shape);
    for (std::size_t k = 1; k < nodes.size(); ++k) {
      for (const double side : {-1.0, 1.0})
        sum += weights[k] * family.cumulative({y, eta + side * nodes[k] * error, trials}, shape);
    }
    return sum;
  }

  [[nodiscard]] double quantile(double share) const {
    constexpr double farthest_node = 3.76;
    double low = family.quantile(share, eta - farthest_node * error, trials, shape);
    double high = family.quantile(share, eta + farthest_node * error, trials, shape);
    if (!std::isfinite(low) || !std::isfinite(high)) return high;
    if (family.whole_numbers()) {
      low -= 1;
      while (high - low > 1) {
        const double middle = std::floor(0.5 * (low + high));
        (cumulative(middle) >= share ? high : low) = middle;
      }
      return high;
    }
    for (int step = 0; step < 60 && high - low > 1e-12 * (std::abs(low) + std::abs(high)); ++step) {
      const double middle = 0.5 * (low + high);
      (cumulative(middle) >= share ? high : low) = middle;
    }
    return 0.5 * (low + high);
  }
};

}  // namespace

Predictions on_scale_of_response(const Family& family, const Predictions& of_eta, const VectorRef& trials) {
  Predictions made = of_eta;
  for (Index i = 0; i < made.values.rows(); ++i) {
    const double m = trials_of(trials, i), eta = of_eta.values(i, 0);
    made.values(i, 0) = m * family.mean(eta);
    if (made.std_errors.size() > 0) made.std_errors(i, 0) *= m * family.mean_slope(eta);
  }
  return made;
}

Predictions::Interval interval_of_responses(const Family& family, const Shape& shape, const Predictions& of_eta,
                                            const VectorRef& trials, double level) {
  Predictions::Interval ends{of_eta.values, of_eta.values};
  for (Index i = 0; i < of_eta.values.rows(); ++i) {
    const UncertainPredictor here{family, shape, of_eta.values(i, 0), of_eta.std_errors(i, 0), trials_of(trials, i)};
    ends.low(i, 0) = here.quantile(0.5 * (1 - level));
    ends.high(i, 0) = here.quantile(0.5 * (1 + level));
  }
  return ends;
}

// To first order f(w + δ) = f(w) + Jδ, so Cov δ = Σ gives every prediction the variance J Σ Jᵀ (docs/mathematics.md
// §9.6).
Predictions predict_with_errors(const Model& bound, const MatrixRef& x, const MatrixRef& z, const VectorRef& w,
                                const Matrix& covariance) {
  constexpr Index rows_at_once = 4096;  // a Jacobian of a million rows need not be in memory
  Predictions result{predict_linked(bound, x, z, w), {}};
  result.std_errors.resizeLike(result.values);
  for (Index begin = 0; begin < z.rows(); begin += rows_at_once) {
    const Index count = std::min(rows_at_once, z.rows() - begin);
    LinkedRows rows;
    if (x.cols() > 0) rows.x = bound.basis(Side::response, x.middleRows(begin, count));
    rows.z = bound.basis(Side::feature, z.middleRows(begin, count));
    rows.y = result.values.middleRows(begin, count);
    const Matrix jacobian = linked_jacobian(bound, rows, w);
    const Vector variance = (jacobian * covariance).cwiseProduct(jacobian).rowwise().sum();
    result.std_errors.middleRows(begin, count) = variance.cwiseMax(0).cwiseSqrt().reshaped(count, result.values.cols());
  }
  return result;
}

}  // namespace unshuffle
