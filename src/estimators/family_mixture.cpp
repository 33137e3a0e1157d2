// The mixture of right and wrong links for any response law, and with what is known of the links.
#include "likelihood/family_mixture.hpp"

#include <fmt/format.h>

#include <cmath>

#include "estimators/family_regression.hpp"
#include "likelihood/wrong_links.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/core/wording.hpp"
#include "verdict/order.hpp"

namespace unshuffle {

namespace {

/// Root mean square standard error of η, in units of what one response tells of it.
double error_in_information(const Family& family, const FamilyRows& rows, const FamilyMixtureFit& fit) {
  const Vector eta = rows.design * fit.parameters + rows.offset;
  const Matrix information = expected_information(family, rows, eta, fit.shape);
  return std::sqrt(std::max(0.0, information.cwiseProduct(fit.covariance).sum() / rows.weights.sum()));
}

OrderEvidence evidence_of(const Input& input, const CandidateLinks& candidates, const Family& family,
                          const FamilyRows& rows, const FamilyMixtureFit& fit) {
  OrderEvidence evidence;
  evidence.rows = double(rows.size());
  evidence.linked = fit.link_probability.sum();
  evidence.parameters = input.bound.parameters();
  evidence.displacement = displacement_of(input.bound, candidates);
  // Where pairs that are known determine the coefficients, the order need not tell them.
  constexpr Index enough = 5;  // per parameter
  const bool known_suffice = candidates.known >= enough * evidence.parameters;
  evidence.chance = known_suffice ? 0 : significance_of_order(input.bound, candidates);
  evidence.error = error_in_information(family, rows, fit);
  // Intervals held the truth in 75 % of such fits (bench_family_coverage); a stated rate or safe rows take the burden.
  evidence.told_by_few = family.kind() == FamilyKind::binomial && input.problem.facts.trials.size() == 0 &&
                         input.problem.facts.wrong_rate.size() == 0 && !known_suffice;
  evidence.rests_on = fmt::format("the row order and a {} law", family.name());
  return evidence;
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
  const CandidateLinks candidates = candidates_of(input.problem, input.bound, links);
  const FamilyRows rows = family_rows(input.problem, input.bound, links, candidates);
  const LinkOdds odds = link_odds(input.problem.facts, links, rows.known);
  const FamilyMixtureFit fit = fit_family_mixture(family, rows, odds, input.run.seed);
  const OrderEvidence evidence = evidence_of(input, candidates, family, rows, fit);
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
                                                       : plan_epsilon(input, family, rows, fit.parameters, fit.shape);
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
