// The mixture of right and wrong links for any response law, and with what is known of the links.
#include "likelihood/family_mixture.hpp"

#include <fmt/format.h>

#include <cmath>

#include "estimators/family_regression.hpp"
#include "likelihood/cox.hpp"
#include "likelihood/cox_mixture.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/core/wording.hpp"
#include "verdict/order.hpp"

namespace unshuffle {

namespace {

/// The mixture by any law: times become counts of events with their baseline hazard, whose martingale residuals are
/// what features in order agree with.
struct AnyMixture {
  FamilyMixtureFit fit;
  FamilyRows rows;
  CandidateLinks candidates;
};

AnyMixture mixture_of(const Input& input, const Family& family, const FamilyRows& rows, const LinkOdds& odds,
                      const Links& links, CandidateLinks candidates) {
  if (family.kind() != FamilyKind::cox)
    return {fit_family_mixture(family, rows, odds, input.run.seed), rows, std::move(candidates)};
  const Vector event = input.problem.facts.event(links.responses);
  CoxMixtureFit found = fit_cox_mixture(rows, event, odds);
  candidates.rows.y = null_residuals(rows, event);
  return {std::move(found.fit), as_counts(rows, event, found.cumulative), std::move(candidates)};
}

std::vector<NamedEstimate> named_odds(const LinkOdds& odds, const FamilyMixtureFit& fit) {
  std::vector<NamedEstimate> made;
  for (std::size_t k = 0; k < odds.names.size(); ++k)
    made.push_back({odds.names[k], fit.odds(Index(k)), fit.odds_errors(Index(k))});
  return made;
}

}  // namespace

Estimate estimate_family_mixture(const Mixture& mixture, const Input& input) {
  const Family& family = family_of(mixture.family.kind);
  if (input.problem.outputs() != 1) {
    throw InvalidInput(fmt::format("{}, {} and {} are for one response; {} were given", option("mismatch"),
                                   option("link_probability"), option("wrong_rate"), input.problem.outputs()));
  }
  require_linear_model(input, "mixture with these options");
  if (mixture.bootstrap.samples > 0) {
    throw InvalidInput(
        fmt::format("{} draws normal noise and one rate of wrong links; without it standard errors are by "
                    "formula",
                    option("bootstrap")));
  }
  const Links links = order_to_fit(input);
  const CandidateLinks in_order = candidates_of(input.problem, input.bound, links);
  const FamilyRows given = family_rows(input.problem, input.bound, links, in_order);
  const LinkOdds odds = link_odds(input.problem.facts, links, given.known);
  const auto [fit, rows, candidates] = mixture_of(input, family, given, odds, links, in_order);
  OrderEvidence evidence = order_evidence(input, candidates, family, {rows, fit.parameters, fit.shape, fit.covariance});
  evidence.linked = fit.link_probability.sum();
  evidence.rests_on = fmt::format("the row order and a {} law", family.name());
  const Vector eta = rows.design * fit.parameters + rows.offset;

  Candidate answer;
  answer.start = "rows in order";
  answer.parameters = fit.parameters;
  answer.objective = -fit.log_likelihood;
  answer.converged = fit.converged;
  answer.iterations = fit.iterations;
  answer.message =
      fmt::format("about {:.0f} of {:.0f} links in the order given are right", evidence.linked, evidence.rows);
  Estimate made;
  made.candidates = {answer};
  made.objective_name = "negative log-likelihood";
  made.evaluations = fit.iterations;
  made.noise_sd = residual_sd(family, rows, eta, rows.weights.cwiseProduct(fit.link_probability));
  if (family.kind() == FamilyKind::gaussian) made.noise_sd = std::exp(0.5 * fit.shape(0));
  made.epsilon = family.kind() == FamilyKind::gaussian ? 2 * std::exp(fit.shape(0))
                                                       : plan_epsilon(input, family, given, fit.parameters, fit.shape);
  made.identifiable = judge(evidence);
  made.order_is_chance = order_is_chance(evidence);
  made.covariance = fit.covariance;
  made.std_error_note = "robust (sandwich), which of the links are right counted as unknown";
  made.link_probabilities = Vector::Constant(input.problem.responses(), std::nan(""));
  made.link_probabilities(links.responses) = fit.link_probability;
  if (family.kind() != FamilyKind::gaussian) made.law.shape = named_shape(family, fit.shape, fit.shape_errors);
  made.law.log_likelihood = fit.log_likelihood;
  made.law.mismatch = named_odds(odds, fit);
  return made;
}

}  // namespace unshuffle
