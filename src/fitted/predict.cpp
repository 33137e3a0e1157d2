#include "unshuffle/fitted/predict.hpp"

#include <algorithm>

#include "core/normal.hpp"
#include "links/linked.hpp"

namespace unshuffle {

Predictions::Interval Predictions::interval(double noise_sd, double level) const {
  const double width = level == 0.95 ? normal_quantile : normal_reach(level);
  const Matrix reach = width * (std_errors.array().square() + noise_sd * noise_sd).sqrt();
  return {values - reach, values + reach};
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
