#include "estimators/least_risk.hpp"

#include <algorithm>
#include <cmath>

#include "core/gram.hpp"
#include "estimators/unlinked.hpp"
#include "likelihood/followed_mixture.hpp"
#include "likelihood/wrong_links.hpp"
#include "starts/starts.hpp"

namespace unshuffle {

// docs/mathematics.md §7.4. With a share α of the links wrong, the slopes of regression on all rows are c = 1 - α times
// what they should be. In the metric Q = JᵀJ/n of predictions let E be the square of their expectation, s² their
// sampling error over k directions and V the variance of responses, of which the features explain a part R²: E = c²R²V.
//
// Before the data α is anything up to its bound, and the density of R² grows like R. Given E, the density of c is then
// proportional to c⁻³ from c₀ = max(1 - bound, √(E/V)) to 1, and that of E to its likelihood times √E ∫c⁻³ dc. The
// observed square of the slopes is k + kE/s² on average, in units of s²/k, and its root is nearly normal.
//
// Slopes multiplied by m err by m²(E + s²) - 2mE/c + E/c², on average over this least at
//   m = mean(E/c) / (mean(E) + s²),
// which is least squares adjusted for a share 1 - 1/m of wrong links.
namespace {

/// What regression on all rows knows, squares in the unit of the response's.
struct Slopes {
  double square = 0;    ///< Of the predictions' deviations from their mean.
  double error = 0;     ///< The sampling error within it.
  double freedom = 0;   ///< Directions.
  double variance = 0;  ///< Of the response.
};

struct WorkingShare {
  double share = 0;
  double risk = 0;
};

/// ∫ c^-power from there to 1.
double integral(double from, double power) { return (std::pow(from, 1 - power) - 1) / (power - 1); }

WorkingShare working_share(const Slopes& slopes, double bound) {
  constexpr int places = 400;
  constexpr double errors = 6, least_share = 1e-6;
  const double k = slopes.freedom, unit = std::sqrt(slopes.error / k), observed = std::sqrt(slopes.square);
  const double low = std::max(0.0, observed - errors * unit);
  const double high = std::min(std::sqrt(slopes.variance), observed + errors * unit);
  if (!(bound > least_share) || !(k > 0) || !(unit > 0) || !(high > low)) return {0, slopes.error};
  double total = 0, square = 0, by_right = 0, by_right_twice = 0;  // means of E, E/c, E/c²
  for (int place = 0; place < places; ++place) {
    const double root = low + (high - low) * (place + 0.5) / places;
    const double noncentral = std::pow(root / unit, 2);
    const double spread = (k + 2 * noncentral) / (2 * (k + noncentral));
    const double middle = std::sqrt(std::max(0.0, k + noncentral - spread));
    const double likelihood = std::exp(-0.5 * std::pow(observed / unit - middle, 2) / spread) / std::sqrt(spread);
    const double fewest_right = std::clamp(root / std::sqrt(slopes.variance), 1 - bound, 1 - 0.5 * least_share);
    const double weight = likelihood * root * root;  // √E dE
    total += weight * integral(fewest_right, 3);
    square += weight * root * root * integral(fewest_right, 3);
    by_right += weight * root * root * integral(fewest_right, 4);
    by_right_twice += weight * root * root * integral(fewest_right, 5);
  }
  if (!(total > 0)) return {0, slopes.error};
  const double size = square / total + slopes.error;
  const double factor = std::clamp(by_right / total / size, 1.0, 1 / (1 - bound));
  return {1 - 1 / factor, factor * factor * size - 2 * factor * by_right / total + by_right_twice / total};
}

Slopes slopes_of(const Model& bound, const CandidateLinks& links, const Vector& w, const Matrix& covariance) {
  const LinkedRows mean = averaged(links, 1);
  const Matrix columns = linked_jacobian(bound, links.rows, w) - linked_jacobian(bound, mean, w);
  const Matrix left = residuals(bound, mean, w);
  const Vector weights = links.weights_or_one(), of_outputs = weights.replicate(left.cols(), 1);
  const double rows = weights.sum();
  const Matrix metric = weighted_gram(columns, of_outputs) / rows;
  const double rounding = 1e-12 * linked_jacobian(bound, links.rows, w).squaredNorm() / rows;
  return {.square = w.dot(metric * w),
          .error = std::max(0.0, covariance.cwiseProduct(metric).sum()),
          .freedom = double((metric.diagonal().array() > rounding).count()),
          .variance = left.cwiseAbs2().rowwise().sum().dot(weights) / rows};
}

/// That the links which the mixture takes for right agree by chance: of n rows, about nᵖ sets determine p coefficients.
double chance_of(const Estimate& by_mixture, double rows) {
  const auto parameters = double(by_mixture.candidates.front().parameters.size());
  return std::exp(-std::max(0.0, by_mixture.gain - parameters * std::log(rows)));
}

}  // namespace

LeastRisk least_risk(const Input& input, const Estimate& by_mixture) {
  constexpr double most_wrong = 0.9;
  const CandidateLinks links = candidates_of(input.problem, input.bound, links_in_order(input.problem));
  const LeastSquares linked = best_least_squares(input.problem, input.bound, links.rows, links.weights, input.run.seed);
  const MismatchRate largest = largest_mismatch_rate(input.bound, links, linked.parameters, input.run.seed);
  const Matrix covariance = spread_regression(input.bound, links, linked, 0).sampling;
  const Matrix metric = linked.matrix / double(links.size());
  const Slopes slopes = slopes_of(input.bound, links, linked.parameters, covariance);
  const WorkingShare working = working_share(slopes, std::min(largest.at_most(), most_wrong));
  LeastRisk made;
  made.share = working.share;
  made.parameters =
      least_squares(input.bound, averaged(links, working.share), linked.parameters, links.weights).parameters;
  if (by_mixture.covariance.size() == 0 || by_mixture.rests_on_ties) return made;
  const Vector apart = by_mixture.candidates.front().parameters - made.parameters;
  const double of_mixture = by_mixture.covariance.cwiseProduct(metric).sum() +
                            chance_of(by_mixture, double(links.size())) * apart.dot(metric * apart);
  const double risk = working.risk + std::max(0.0, covariance.cwiseProduct(metric).sum() - slopes.error);
  if (!std::isfinite(of_mixture) || !(risk + of_mixture > 0)) return made;
  made.mixture = risk / (risk + std::max(0.0, of_mixture));
  made.parameters += made.mixture * apart;
  return made;
}

}  // namespace unshuffle
