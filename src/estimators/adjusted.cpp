// Regression on rows in order, adjusted for the share that is linked wrongly.
#include <fmt/format.h>

#include <cmath>

#include "estimators/unlinked.hpp"
#include "likelihood/bootstrap.hpp"
#include "likelihood/wrong_links.hpp"
#include "starts/starts.hpp"
#include "verdict/identifiability.hpp"

namespace unshuffle {

namespace {

AdjustedFit adjusted_fit(const Input& input, const CandidateLinks& links) {
  const LeastSquares linked = best_least_squares(input.problem, input.bound, links.rows, links.weights, input.run.seed);
  return fit_adjusted(input.bound, links, linked, input.run.seed);
}

/// As many links drawn from those that are there, the known ones among themselves.
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

}  // namespace

Estimate estimate(const Adjusted& options, const Input& input) {
  require_linear_model(input, "adjusted");
  const CandidateLinks links = candidates_of(input.problem, input.bound, order_to_fit(input));
  const AdjustedFit fit = adjusted_fit(input, links);

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
  made.identifiable = judge(fit, links, input.bound);
  if (const int samples = options.bootstrap.samples; samples > 0) {
    made.covariance = spread_of_refits(input.run, samples, [&](int k) {
      return adjusted_fit(input, drawn_from(links, bootstrap_stream(input.run.seed, k))).parameters;
    });
    made.stopped = made.covariance.size() == 0;
    made.std_error_note = bootstrap_note(samples, made.covariance, "the rows");
  } else {
    made.covariance = fit.covariance;
    made.std_error_note = "robust (sandwich), the share of wrong links counted as estimated";
  }
  return made;
}

}  // namespace unshuffle
