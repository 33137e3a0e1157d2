// Regression on rows in order, adjusted for the share that is linked wrongly.
#include <fmt/format.h>

#include <cmath>

#include "estimators/family_regression.hpp"
#include "estimators/unlinked.hpp"
#include "likelihood/bootstrap.hpp"
#include "likelihood/followed_mixture.hpp"
#include "likelihood/wrong_links.hpp"
#include "starts/starts.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/core/wording.hpp"
#include "verdict/order.hpp"

namespace unshuffle {

namespace {

struct AdjustedAnswer {
  Vector parameters;
  Matrix covariance;
  double noise_variance;
  MismatchRate mismatch;
  bool spread;  ///< The share of wrong links is an interval.
};

AdjustedAnswer adjusted_fit(const Adjusted& options, const Input& input, const CandidateLinks& links) {
  const LeastSquares linked = best_least_squares(input.problem, input.bound, links.rows, links.weights, input.run.seed);
  AdjustedFit at_bound = fit_adjusted(input.bound, links, linked, input.run.seed);
  AdjustedAnswer made{std::move(at_bound.parameters), std::move(at_bound.covariance), at_bound.noise_variance,
                      std::move(at_bound.mismatch), options.wrong_share == WrongShare::interval};
  if (!made.spread) return made;
  SpreadRegression regression = spread_regression(input.bound, links, linked, made.mismatch.at_most());
  made.parameters = std::move(regression.parameters);
  made.covariance = std::move(regression.covariance);
  return made;
}

/// Links resampled with replacement, known ones among themselves.
CandidateLinks drawn_from(const CandidateLinks& links, RandomStream random) {
  std::vector<Index> chosen;
  for (Index i = 0; i < links.size(); ++i)
    chosen.push_back(i < links.known ? random.below(links.known) : links.known + random.below(links.open()));
  CandidateLinks drawn{.rows = subset(links.rows, chosen), .known = links.known};
  if (links.weights.size() > 0) drawn.weights = links.weights(chosen);
  if (!links.blocks.empty()) {
    for (const Index i : chosen) drawn.blocks.push_back(links.blocks[std::size_t(i)]);
  }
  return drawn;
}

OrderEvidence evidence_of(const AdjustedAnswer& fit, const Input& input, const CandidateLinks& links) {
  // If known pairs determine the coefficients, the order is not needed.
  const bool by_order = links.known * links.rows.y.cols() <= input.bound.parameters();
  OrderEvidence made;
  made.rows = double(links.size());
  made.linked = double(links.known) + (1 - fit.mismatch.rate) * double(links.open());
  made.parameters = input.bound.parameters();
  made.displacement = displacement_of(input.bound, links);
  made.chance = by_order ? significance_of_order(input.bound, links) : 0;
  made.error = error_in_noise(links.rows, input.bound, fit.parameters, fit.covariance, fit.noise_variance);
  made.rests_on = "regression on all rows, whatever the noise, and on how many links can be wrong";
  return made;
}

}  // namespace

Estimate estimate(const Adjusted& options, const Input& input) {
  if (!options.family.is_gaussian() || input.problem.facts.wrong_rate.size() > 0)
    return estimate_family_adjusted(options, input);
  if (options.weighting != Weighting::lahiri_larsen)
    throw InvalidInput(fmt::format("{} applies only with {}", option("weighting"), option("wrong_rate")));
  require_linear_model(input, "adjusted");
  const CandidateLinks links = candidates_of(input.problem, input.bound, order_to_fit(input));
  const AdjustedAnswer fit = adjusted_fit(options, input, links);

  Candidate answer;
  answer.start = "rows in order";
  answer.parameters = fit.parameters;
  answer.objective = residuals(input.bound, links.rows, fit.parameters).squaredNorm();
  answer.converged = true;
  answer.iterations = 1;
  answer.message = fmt::format("at most {:.1f} % of the links in the order given are wrong", 100 * fit.mismatch.rate);
  Estimate made;
  made.candidates = {answer};
  made.evaluations = 1;
  made.noise_sd = std::sqrt(fit.noise_variance);
  made.epsilon = 2 * fit.noise_variance;
  const OrderEvidence evidence = evidence_of(fit, input, links);
  made.identifiable = judge(evidence);
  made.order_is_chance = order_is_chance(evidence);
  if (const int samples = options.bootstrap.samples; samples > 0) {
    made.covariance = spread_of_refits(input.run, samples, [&](int k) {
      return adjusted_fit(options, input, drawn_from(links, bootstrap_stream(input.run.seed, k))).parameters;
    });
    made.stopped = made.covariance.size() == 0;
    made.std_error_note = bootstrap_note(samples, made.covariance, "the rows");
  } else {
    made.covariance = fit.covariance;
    made.std_error_note = fit.spread ? "robust (sandwich), the share of wrong links counted as anything up to its bound"
                                     : "robust (sandwich), the share of wrong links counted as estimated";
  }
  return made;
}

}  // namespace unshuffle
