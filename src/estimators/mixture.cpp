// Rows in order, some of them linked wrongly: a mixture of two kinds of rows.
#include "likelihood/mixture.hpp"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "core/balanced_inverse.hpp"
#include "core/special.hpp"
#include "estimators/unlinked.hpp"
#include "likelihood/bootstrap.hpp"
#include "likelihood/followed_mixture.hpp"
#include "likelihood/wrong_links.hpp"
#include "starts/starts.hpp"
#include "verdict/order.hpp"

namespace unshuffle {

namespace {

/// Links are right with their fitted probability; the others point at rows drawn from the same block.
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

/// A mixture's answer, for either noise law.
struct OrderAnswer {
  Vector parameters;
  Matrix covariance;
  double noise_variance = 0;
  Vector link_probability;
  double log_likelihood = 0;
  int iterations = 0;
  bool converged = true;
  std::string std_error_note{};
  OrderEvidence evidence{};
  std::vector<WhatIf> what_if{};
};

OrderAnswer answer_of(const MixtureFit& fit, const CandidateLinks& links, const Model& bound) {
  OrderAnswer made{fit.parameters,     fit.covariance, fit.noise_variance, fit.link_probability,
                   fit.log_likelihood, fit.iterations, fit.converged};
  made.std_error_note = "robust (sandwich), which of the links are right counted as unknown";
  made.evidence.agreement = agreement_with_regression(bound, links, fit.parameters);
  made.evidence.limited = fit.rate_is_limited;
  made.evidence.tied = fit.tied;
  made.evidence.only_ties = fit.only_ties;
  made.evidence.rests_on = "the row order and normal noise, and agrees with regression on all rows";
  if (can_be_followed(bound, links))
    made.evidence.independence = independence_of_features(bound, links, fit.parameters, fit.link_probability);
  return made;
}

OrderAnswer answer_of(const FollowedMixture& fit) {
  OrderAnswer made{fit.parameters,       fit.covariance,     fit.noise_variance,
                   fit.link_probability, fit.log_likelihood, fit.iterations};
  made.std_error_note = "robust (sandwich), which links are right and how many counted as unknown, noise of any shape";
  made.evidence.agreement = fit.agreement;
  made.evidence.independence = fit.independence;
  made.evidence.limited = fit.rate_is_limited;
  made.evidence.rests_on = "the row order, for noise of any shape, and agrees with regression on all rows";
  return made;
}

/// Whether an answer with stronger assumptions is compatible with one with weaker ones: chance explains the difference.
bool confirms(const FollowedMixture& free, const MixtureFit& normal) {
  constexpr double surprising = 1e-2;
  const Vector apart = normal.parameters - free.parameters;
  const double distance = apart.dot(balanced_inverse(free.covariance) * apart);
  return chi_squared_tail(std::max(0.0, distance), double(apart.size())) > surprising;
}

/// The normal law is the more exact one where it holds. Where wrong links depend on the features, regression on all
/// rows disagrees, or an estimated law leads elsewhere, it does not.
OrderAnswer best_law(const Mixture& mixture, const CandidateLinks& links, const Input& input,
                     const LeastSquares& linked, const MixtureFit& normal) {
  OrderAnswer by_normal = answer_of(normal, links, input.bound);
  const bool normal_only = mixture.law == NoiseLawKind::normal || mixture.noise.sd > 0;
  if (normal_only || !can_be_followed(input.bound, links)) return by_normal;
  // Agreement to a thousandth of the spread is not chance.
  constexpr double exact = 1e-6;
  const Matrix& y = links.rows.y;
  if (normal.noise_variance <= exact * (y.array() - y.mean()).square().mean()) return by_normal;
  const MismatchRate largest = largest_mismatch_rate(input.bound, links, linked.parameters, input.run.seed);
  const FollowedMixture followed = follow_mixture(input.bound, links, linked, largest);
  // With noise much smaller than the signal, right links stand out more than the path from least squares can detect.
  constexpr double decided = 10;  // nats
  const bool ahead = normal.log_likelihood > followed.log_likelihood + decided;
  const bool stands = !contradicted(by_normal.evidence) && !normal.rate_is_limited && normal.tied == 0;
  const bool holds = stands && (ahead || confirms(followed, normal));
  if (mixture.law == NoiseLawKind::automatic && holds) {
    by_normal.what_if = {{"the noise has any shape", followed.parameters - normal.parameters}};
    return by_normal;
  }
  OrderAnswer by_any_law = answer_of(followed);
  by_any_law.what_if = {{"the noise is normal", normal.parameters - followed.parameters, !stands}};
  by_any_law.evidence.tied = normal.tied;
  return by_any_law;
}

/// Ruled out where normal noise alone, without wrong links, is far less likely.
WhatIf no_wrong_links(const LeastSquares& linked, const CandidateLinks& links, const OrderAnswer& found) {
  constexpr double far = 10;  // nats
  const auto numbers = double(links.rows.y.size());
  const double log_likelihood = -0.5 * numbers * (std::log(2 * std::numbers::pi * linked.squares / numbers) + 1);
  return {"no link is wrong", linked.parameters - found.parameters, found.log_likelihood > log_likelihood + far};
}

/// The p-value of the agreement of rows in order; the fewer nats the order explains, the larger.
double chance_of_order(const Model& bound, const CandidateLinks& links, const MixtureFit& normal) {
  if (averages_over_partners(bound)) return significance_of_order(bound, links);
  const double nats = normal.gain - double(bound.parameters()) * std::log(double(links.size()));
  return std::exp(-std::max(0.0, nats));
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
  const MixtureFit normal = fit_mixture_from_all(input.bound, candidates, linked, options);
  OrderAnswer found = best_law(mixture, candidates, input, linked, normal);
  OrderEvidence& evidence = found.evidence;
  evidence.rows = double(candidates.size());
  evidence.linked = found.link_probability.sum();
  evidence.parameters = input.bound.parameters();
  evidence.displacement = displacement_of(input.bound, candidates);
  evidence.similar_partners =
      gain_of_similar_partners(input.bound, candidates, found.parameters, found.link_probability);
  evidence.chance = chance_of_order(input.bound, candidates, normal);
  evidence.error =
      error_in_noise(candidates.rows, input.bound, found.parameters, found.covariance, found.noise_variance);

  Candidate answer;
  answer.start = "rows in order";
  answer.parameters = found.parameters;
  answer.objective = -found.log_likelihood;
  answer.converged = found.converged;
  answer.iterations = found.iterations;
  answer.message =
      fmt::format("about {:.0f} of {:.0f} links in the order given are right", evidence.linked, evidence.rows);
  Estimate made;
  made.candidates = {answer};
  made.objective_name = "negative log-likelihood";
  made.evaluations = found.iterations;
  made.noise_sd = std::sqrt(found.noise_variance);
  made.epsilon = 2 * found.noise_variance;
  made.identifiable = judge(evidence);
  made.identifiable.what_if = std::move(found.what_if);
  made.identifiable.what_if.push_back(no_wrong_links(linked, candidates, found));
  made.contradicted = contradicted(evidence);
  made.order_is_chance = order_is_chance(evidence);
  made.link_probabilities = Vector::Constant(input.problem.responses(), std::nan(""));
  made.link_probabilities(links.responses) = found.link_probability;
  if (const int samples = mixture.bootstrap.samples; samples > 0) {
    made.covariance = bootstrap_covariance(input, samples, links, normal, options);
    made.stopped = made.covariance.size() == 0;
    made.std_error_note = bootstrap_note(samples, made.covariance);
  } else {
    made.covariance = found.covariance;
    made.std_error_note = found.std_error_note;
  }
  return made;
}

}  // namespace unshuffle
