// Rows in order, some of them linked wrongly: a mixture of two kinds of rows.
#include "likelihood/mixture.hpp"

#include <fmt/format.h>

#include <cmath>

#include "estimators/unlinked.hpp"
#include "likelihood/bootstrap.hpp"
#include "likelihood/wrong_links.hpp"
#include "starts/starts.hpp"
#include "verdict/identifiability.hpp"

namespace unshuffle {

namespace {

/// Links are right with the probability the fit found for each; the others point at rows drawn from the same block.
Links drawn_links(const Problem& problem, const Links& links, const Vector& probability, RandomStream& random) {
  const Links wrong = random_links(problem, random);
  std::vector<Index> partner(std::size_t(problem.responses()), -1);
  for (Index k = 0; k < wrong.size(); ++k)
    partner[std::size_t(wrong.responses[std::size_t(k)])] = wrong.features[std::size_t(k)];
  Links drawn = links;
  for (Index k = 0; k < links.size(); ++k) {
    const Index other = partner[std::size_t(links.responses[std::size_t(k)])];
    if (random.uniform() > probability(k) && other >= 0) drawn.features[std::size_t(k)] = other;
  }
  return drawn;
}

Matrix bootstrap_covariance(const Input& input, int samples, const Links& links, const MixtureFit& fit,
                            MixtureOptions options) {
  if (!fit.rate_is_limited) options.largest_rate = 1;
  options.least_noise_variance = fit.kept_above;
  return spread_of_refits(input.run, samples, [&](int k) {
    RandomStream random = bootstrap_stream(input.run.seed, k);
    const Links truth = drawn_links(input.problem, links, fit.link_probability, random);
    const Problem drawn =
        drawn_from(input.problem, input.bound, fit.parameters, std::sqrt(fit.noise_variance), truth, random);
    return fit_mixture(input.bound, candidates_of(drawn, input.bound, links), fit.parameters, options).parameters;
  });
}

}  // namespace

Estimate estimate(const Mixture& mixture, const Input& input) {
  const Links links = order_to_fit(input);
  const CandidateLinks candidates = candidates_of(input.problem, input.bound, links);
  const LeastSquares linked =
      best_least_squares(input.problem, input.bound, candidates.rows, candidates.weights, input.run.seed);
  MixtureOptions options;
  options.seed = input.run.seed;
  options.known_noise_variance = std::pow(mixture.noise.sd, 2);
  if (mixture.limit.max_iterations > 0) options.max_iterations = mixture.limit.max_iterations;
  bound_mismatch_rate(input.bound, candidates, linked, options);
  const MixtureFit fit = fit_mixture_from_all(input.bound, candidates, linked, options);
  const double agreement = agreement_with_regression(input.bound, candidates, fit.parameters);

  Candidate answer;
  answer.start = "rows in order";
  answer.parameters = fit.parameters;
  answer.objective = -fit.log_likelihood;
  answer.converged = fit.converged;
  answer.iterations = fit.iterations;
  answer.message = fmt::format("{:.1f} % of the links in the order given are wrong", 100 * fit.mismatch_rate);
  Estimate made;
  made.candidates = {answer};
  made.objective_name = "negative log-likelihood";
  made.evaluations = fit.iterations;
  made.noise_sd = std::sqrt(fit.noise_variance);
  made.epsilon = 2 * fit.noise_variance;
  made.identifiable = judge(fit, candidates, input.bound, agreement);
  made.contradicted = contradicts(agreement);
  made.link_probabilities = Vector::Constant(input.problem.responses(), std::nan(""));
  made.link_probabilities(links.responses) = fit.link_probability;
  if (const int samples = mixture.bootstrap.samples; samples > 0) {
    made.covariance = bootstrap_covariance(input, samples, links, fit, options);
    made.stopped = made.covariance.size() == 0;
    made.std_error_note = bootstrap_note(samples, made.covariance);
  } else {
    made.covariance = fit.covariance;
    made.std_error_note = "robust (sandwich), which of the links are right counted as unknown";
  }
  return made;
}

}  // namespace unshuffle
