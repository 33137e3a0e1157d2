#include "estimators/least_risk.hpp"

#include <algorithm>
#include <cmath>

#include "estimators/unlinked.hpp"
#include "likelihood/followed_mixture.hpp"
#include "likelihood/wrong_links.hpp"
#include "starts/starts.hpp"

namespace unshuffle {

// Wrong links attenuate regression on all rows, b, which is precise; adjusted for an unknown share of them, a, it is
// not. In the metric Q = JᵀJ/n of predictions let b have the sampling error s² = tr(SQ), a the error t². On the way
// from one to the other, w = b + λ(a - b), the sampling error is (s + λ(t - s))² as adjusting only stretches b; what is
// left of the bias is (1-λ)²D, where D = |a - b|² - (t - s)² estimates its square. That is least at
//   λ = (D - s(t - s)) / (D + (t - s)²).
// The mixture errs by tr(VQ), for other reasons, so the two are weighted by the inverse of their errors.
LeastRisk least_risk(const Input& input, const Estimate& by_mixture) {
  const CandidateLinks links = candidates_of(input.problem, input.bound, links_in_order(input.problem));
  const LeastSquares linked = best_least_squares(input.problem, input.bound, links.rows, links.weights, input.run.seed);
  const MismatchRate largest = largest_mismatch_rate(input.bound, links, linked.parameters, input.run.seed);
  const SpreadRegression plain = spread_regression(input.bound, links, linked, 0);
  const SpreadRegression stretched = spread_regression(input.bound, links, linked, largest.at_most());
  const Matrix metric = linked.matrix / double(links.size());
  const auto risk_of = [&](const Matrix& covariance) { return std::max(0.0, covariance.cwiseProduct(metric).sum()); };
  const Vector way = stretched.parameters - linked.parameters;
  const double s = std::sqrt(risk_of(plain.sampling)), more = std::sqrt(risk_of(stretched.sampling)) - s;
  const double bias = std::max(0.0, way.dot(metric * way) - more * more);
  const double curvature = bias + more * more;
  LeastRisk made;
  made.adjusted = curvature > 0 ? std::clamp((bias - s * more) / curvature, 0.0, 1.0) : 0;
  made.parameters = linked.parameters + made.adjusted * way;
  if (by_mixture.covariance.size() == 0 || by_mixture.rests_on_ties || by_mixture.order_is_chance) return made;
  const double unknown_share = risk_of(stretched.covariance - stretched.sampling);
  const double risk = std::pow(s + made.adjusted * more, 2) + std::pow(1 - made.adjusted, 2) * bias + unknown_share;
  const double of_mixture = risk_of(by_mixture.covariance);
  if (!std::isfinite(of_mixture) || !(risk + of_mixture > 0)) return made;
  made.mixture = risk / (risk + of_mixture);
  made.parameters += made.mixture * (by_mixture.candidates.front().parameters - made.parameters);
  return made;
}

}  // namespace unshuffle
