// Rows in order, some of them linked wrongly: a mixture of two kinds of rows.
#include "likelihood/mixture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/balanced_inverse.hpp"
#include "core/special.hpp"
#include "estimators/family_regression.hpp"
#include "estimators/unlinked.hpp"
#include "likelihood/bootstrap.hpp"
#include "likelihood/followed_mixture.hpp"
#include "likelihood/order_doubts.hpp"
#include "likelihood/widened.hpp"
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
  const Index outputs = input.problem.outputs();
  const Matrix noise = std::sqrt(fit.noise_variance) * Matrix::Identity(outputs, outputs);
  return spread_of_refits(input.run, samples, [&](int k) {
    RandomStream random = bootstrap_stream(input.run.seed, k);
    const Links truth = drawn_links(input.problem, links, fit.link_probability, random);
    const Problem drawn = drawn_from(input.problem, input.bound, fit.parameters, noise, truth, random);
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
  bool normal_noise = false;
  std::vector<OrderDoubt> doubts{};
};

OrderAnswer answer_of(const MixtureFit& fit, const CandidateLinks& links, const Model& bound) {
  OrderAnswer made{
      fit.parameters,     widened(fit.covariance, fit.model_covariance.diagonal().cwiseMax(0.0).cwiseSqrt()),
      fit.noise_variance, fit.link_probability,
      fit.log_likelihood, fit.iterations,
      fit.converged};
  made.normal_noise = true;
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

/// Agreement to a thousandth of the spread is not chance.
bool is_noiseless(const CandidateLinks& links, double noise_variance) {
  constexpr double exact = 1e-6;
  const Matrix& y = links.rows.y;
  return noise_variance <= exact * (y.array() - y.mean()).square().mean();
}

/// Whether an answer with stronger assumptions is compatible with one with weaker ones: chance explains the difference.
bool confirms(const FollowedMixture& free, const MixtureFit& normal) {
  constexpr double surprising = 1e-2;
  const Vector apart = normal.parameters - free.if_exact.parameters;
  const double distance = apart.dot(balanced_inverse(free.if_exact.covariance) * apart);
  return chi_squared_tail(std::max(0.0, distance), double(apart.size())) > surprising;
}

/// Nats by which the rows prefer wrong links to similar rows.
double nats_of_similar_partners(const std::vector<OrderDoubt>& doubts) {
  const auto found = std::find_if(doubts.begin(), doubts.end(), [](const OrderDoubt& doubt) {
    return doubt.kind == OrderDoubt::Kind::similar_partners;
  });
  return found == doubts.end() ? 0 : found->nats;
}

/// Noise of any shape fits by chance a little better than normal noise, so it is at most as probable.
void doubt_normal_noise(const FollowedMixture& followed, OrderAnswer& by_normal) {
  const auto& [parameters, covariance] = followed.if_exact;
  if (!parameters.allFinite() || !covariance.allFinite()) return;
  const double nats = std::min(0.0, followed.log_likelihood - by_normal.log_likelihood);
  const double share = std::exp(nats) / (1 + std::exp(nats));
  by_normal.covariance = (1 - share) * by_normal.covariance + share * covariance;
  by_normal.doubts = {{OrderDoubt::Kind::noise, "the noise has any shape", parameters - by_normal.parameters, nats}};
}

/// The normal law is the more exact one where it holds. Where wrong links depend on the features, regression on all
/// rows disagrees, or an estimated law leads elsewhere, it does not.
OrderAnswer best_law(const Mixture& mixture, const CandidateLinks& links, const Input& input,
                     const LeastSquares& linked, const MixtureFit& normal) {
  OrderAnswer by_normal = answer_of(normal, links, input.bound);
  const bool normal_only = mixture.law == NoiseLawKind::normal || mixture.noise.sd > 0;
  if (normal_only || !can_be_followed(input.bound, links)) return by_normal;
  if (is_noiseless(links, normal.noise_variance)) return by_normal;
  const MismatchRate largest = largest_mismatch_rate(input.bound, links, linked.parameters, input.run.seed);
  const FollowedMixture followed = follow_mixture(input.bound, links, linked, largest);
  // With noise much smaller than the signal, right links stand out more than the path from least squares can detect.
  constexpr double decided = 10;  // nats
  const bool ahead = normal.log_likelihood > followed.log_likelihood + decided;
  // Wrong links to similar rows contradict the mixture as another noise law would; the likelihood says which it is.
  if (contradicted(by_normal.evidence)) {
    const double nats = nats_of_similar_partners(
        doubts_of_order(input.bound, links, {normal.parameters, normal.link_probability, true}));
    if (normal.log_likelihood + nats > followed.log_likelihood) by_normal.evidence.similar_partners = nats;
  }
  const bool stands = !contradicted(by_normal.evidence) && !normal.rate_is_limited && normal.tied == 0;
  const bool holds = stands && (ahead || by_normal.evidence.similar_partners > 0 || confirms(followed, normal));
  if (mixture.law == NoiseLawKind::automatic && holds) {
    if (!ahead) doubt_normal_noise(followed, by_normal);
    return by_normal;
  }
  OrderAnswer by_any_law = answer_of(followed);
  by_any_law.what_if = {{"the noise is normal", normal.parameters - followed.parameters, !stands}};
  by_any_law.evidence.tied = normal.tied;
  by_any_law.evidence.normal_independence = by_normal.evidence.independence;
  return by_any_law;
}

/// Ruled out where normal noise alone, without wrong links, is far less likely.
WhatIf no_wrong_links(const LeastSquares& linked, const CandidateLinks& links, const OrderAnswer& found) {
  constexpr double far = 10;  // nats
  const auto numbers = double(links.rows.y.size());
  const double log_likelihood = -0.5 * numbers * (std::log(2 * std::numbers::pi * linked.squares / numbers) + 1);
  return {"no link is wrong", linked.parameters - found.parameters, found.log_likelihood > log_likelihood + far};
}

/// Averages the answer over other assumptions than its own. Not where it rests on ties, or there is no noise: an
/// average with such an answer is none.
void count_doubts(const Mixture& mixture, const Model& bound, const CandidateLinks& links, OrderAnswer& found) {
  constexpr double far = 3;  // nats
  if (mixture.law != NoiseLawKind::automatic || mixture.noise.sd > 0 || found.evidence.tied > 0) return;
  if (is_noiseless(links, found.noise_variance)) return;
  std::vector<OrderDoubt> doubts =
      doubts_of_order(bound, links, {found.parameters, found.link_probability, found.normal_noise});
  found.evidence.similar_partners = nats_of_similar_partners(doubts);
  doubts.insert(doubts.end(), found.doubts.begin(), found.doubts.end());
  for (const OrderDoubt& doubt : doubts) {
    found.what_if.push_back({doubt.assumption, doubt.shift, doubt.nats < -far});
  }
  // With noise of any shape and any share of wrong links, nats between other assumptions mean too little to move it.
  if (!found.normal_noise) return;
  // Regression is far less precise, so it must have something to say before the answer moves towards it.
  std::erase_if(doubts, [](const OrderDoubt& doubt) {
    return doubt.nats < -far || (doubt.kind == OrderDoubt::Kind::regression && doubt.nats < 0);
  });
  const Averaged over_all = averaged_over(doubts, found.covariance);
  for (WhatIf& other : found.what_if) other.shift -= over_all.shift;
  found.parameters += over_all.shift;
  found.covariance = over_all.covariance;
}

/// The p-value of the agreement of rows in order; the fewer nats the order explains, the larger.
double chance_of_order(const Model& bound, const CandidateLinks& links, const MixtureFit& normal) {
  if (averages_over_partners(bound)) return significance_of_order(bound, links);
  const double nats = normal.gain - double(bound.parameters()) * std::log(double(links.size()));
  return std::exp(-std::max(0.0, nats));
}

}  // namespace

Estimate estimate(const Mixture& mixture, const Input& input) {
  if (!mixture.family.is_gaussian() || input.problem.facts.describes_links())
    return estimate_family_mixture(mixture, input);
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
  count_doubts(mixture, input.bound, candidates, found);
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
  const WhatIf all_right = no_wrong_links(linked, candidates, found);
  const auto same = [&](const WhatIf& other) { return other.assumption == all_right.assumption; };
  if (std::none_of(made.identifiable.what_if.begin(), made.identifiable.what_if.end(), same))
    made.identifiable.what_if.push_back(all_right);
  made.contradicted = contradicted(evidence);
  made.order_is_chance = order_is_chance(evidence);
  made.gain = normal.gain;
  made.rests_on_ties = evidence.tied > 0;
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
