// Chooses an estimator by the evidence about the links (pairs, prior, row order, groups, outputs).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "estimators/least_risk.hpp"
#include "estimators/unlinked.hpp"
#include "likelihood/followed_mixture.hpp"
#include "links/linked.hpp"
#include "objective/backend.hpp"
#include "starts/starts.hpp"
#include "tables/equal_weights.hpp"
#include "unshuffle/model/spatial.hpp"
#include "verdict/identifiability.hpp"

namespace unshuffle {

namespace {

/// The facts the choice depends on, computed once.
struct Facts {
  bool all_pairs_known;
  bool prior;
  bool order_may_tell;
  bool hinted;  ///< The user stated that the order is partly right.
  std::size_t groups;
  bool scalar;  ///< One response and an additive model: all links together are affordable.
  bool points;  ///< See only_points().
};

/// Whether to test the row order: it is a hint, or the user did not rule it out and the tables are equally long. Groups
/// related to the response make rows in any order agree, so with groups the hint must be explicit.
bool order_may_tell(const Input& input) {
  const Problem& problem = input.problem;
  if (problem.order == RowOrder::unrelated) return false;
  const bool as_long = problem.responses() == problem.features();
  if (!problem.order_is_a_hint() && (!as_long || !problem.response_groups.empty())) return false;
  return links_in_order(problem).size() * problem.outputs() > 2 * input.bound.parameters();
}

/// A map of points about whose links nothing else is known, and no option that only other methods read.
bool only_points(const Auto& options, const Input& input) {
  const Problem& problem = input.problem;
  const bool nothing_else = problem.known.empty() && !problem.has_prior() && problem.response_groups.empty() &&
                            equal_weights(problem.response_weights) && equal_weights(problem.feature_weights);
  const bool from_anywhere = options.starts.start.kind == StartKind::automatic && options.starts.starts == 0;
  return dynamic_cast<const SpatialMap*>(&input.bound) != nullptr && nothing_else && from_anywhere &&
         options.bootstrap.samples == 0 && options.family.is_gaussian();
}

Facts look(const Auto& options, const Input& input) {
  const Problem& problem = input.problem;
  const auto known = static_cast<Index>(problem.known.size());
  return {.all_pairs_known = known > 0 && known == std::min(problem.responses(), problem.features()),
          .prior = problem.has_prior(),
          .order_may_tell = order_may_tell(input),
          .hinted = problem.order_is_a_hint(),
          .groups = blocks_of(problem).size(),
          .scalar = backend_for(problem, input.bound, options.precision.backend) == Backend::sorted,
          .points = only_points(options, input)};
}

Oracle oracle_of(const Auto& options) { return {.plan = {.precision = options.precision}, .family = options.family}; }

Mixture mixture_of(const Auto& options) {
  return {.precision = options.precision,
          .limit = options.limit,
          .noise = options.noise,
          .bootstrap = options.bootstrap,
          .family = options.family};
}

Adjusted adjusted_of(const Auto& options) { return {.precision = options.precision, .bootstrap = options.bootstrap}; }

Entropic entropic_of(const Auto& options) {
  return {options.precision,   options.starts, options.noise,         options.bootstrap,
          options.sensitivity, options.family, options.response_noise};
}

Estimate explain(Estimate estimate, Estimator chosen, const std::string& choice, const std::string& why) {
  estimate.choice = fmt::format("{}: {}\n{}", name_of(chosen), choice, why);
  estimate.chosen = std::move(chosen);
  return estimate;
}

/// A map of points whose rows may have no partner; `because` as below.
Estimate by_points(const Auto& options, const Input& input, const std::string& because) {
  Registration registration;
  registration.precision = options.precision;
  registration.noise = options.noise;
  Estimate found = estimate(registration, input);
  Estimator chosen = *found.chosen;
  return explain(std::move(found), std::move(chosen), "a map of points, some of them without a partner",
                 because + "the model maps points, and nothing else is known of the links");
}

/// The likelihood over all links; `because` explains why the order does not suffice, if it was tested.
Estimate by_all_links(const Auto& options, const Facts& facts, const Input& input, const std::string& because) {
  if (facts.points) return by_points(options, input, because);
  const Entropic entropic = entropic_of(options);
  const std::string groups = facts.groups > 1 ? fmt::format(" within {} groups and known pairs", facts.groups) : "";
  const char* noise = !options.family.is_gaussian() ? "" : options.noise.sd > 0 ? ", noise given" : ", noise estimated";
  const char* why = !options.family.is_gaussian()
                        ? "exact sums over the links of small groups, the transport plan for large ones"
                    : facts.scalar ? "one response and an additive model make all links together affordable"
                    : options.precision.backend == Backend::dense
                        ? "the dense backend was requested: all pairs are considered"
                        : "several responses, or a model that is not additive: all pairs are considered";
  return explain(estimate(entropic, input), entropic, "likelihood over all links" + groups + noise, because + why);
}

// The mixture is the most accurate where its likelihood holds. If regression on all rows contradicts it, or shows that
// the order carries more information than the likelihood uses, that regression, adjusted for wrong links, is the
// answer.
Estimate by_order(const Auto& options, const Input& input, const Estimate& by_mixture) {
  const Mixture mixture = mixture_of(options);
  const std::string found = by_mixture.identifiable.reason;
  const bool unsure = by_mixture.contradicted || by_mixture.order_is_chance;
  if (!unsure || !input.bound.linear_in_parameters()) {
    return explain(by_mixture, mixture, "rows in order, each link right or wrong", found);
  }
  const Adjusted adjusted = adjusted_of(options);
  Estimate by_regression = estimate(adjusted, input);
  by_regression.contradicted = by_mixture.contradicted;
  return explain(std::move(by_regression), adjusted, "regression on rows in order, adjusted for wrong links",
                 "the mixture model was rejected: " + found);
}

/// An answer that is not identified may have a larger error than a compromise with regression: see least_risk.cpp. How
/// far that moves it counts as an error.
Estimate of_least_risk(const Input& input, const Estimate& by_mixture, Estimate in_order) {
  const bool sure = in_order.identifiable.verdict == Verdict::identified;
  if (sure || !input.bound.linear_in_parameters()) return in_order;
  const LeastRisk found = least_risk(input, by_mixture);
  Candidate& answer = in_order.candidates.front();
  const Vector shift = found.parameters - answer.parameters;
  answer.parameters = found.parameters;
  in_order.candidates.resize(1);
  if (in_order.covariance.size() > 0) in_order.covariance += shift * shift.transpose();
  for (WhatIf& other : in_order.identifiable.what_if) other.shift -= shift;
  in_order.choice += fmt::format(
      "; by their expected errors, the answer is {:.0f} % the mixture's and the rest regression on all rows, adjusted "
      "for {:.0f} % wrong links",
      100 * found.mixture, 100 * found.share);
  return in_order;
}

/// Sum of the logarithms of the standard errors: of two estimates of the same coefficients, the one with the smaller
/// sum is more precise.
double vagueness(const Estimate& estimate) {
  if (estimate.covariance.size() == 0 || estimate.identifiable.verdict == Verdict::not_identifiable)
    return std::numeric_limits<double>::infinity();
  return 0.5 * estimate.covariance.diagonal().array().log().sum();
}

/// Whether regression on rows in order contradicts the answer from all links. Without groups that answer rests on the
/// same noise law as the mixture.
bool contradicted(const Facts& facts, const Input& input, const Estimate& in_order, const Estimate& all_links) {
  if (in_order.contradicted && facts.groups == 1) return true;
  const CandidateLinks links = candidates_of(input.problem, input.bound, links_in_order(input.problem));
  return contradicts(agreement_with_regression(input.bound, links, all_links.candidates.front().parameters));
}

Estimate by_known_pairs(const Auto& options, const Facts&, const Input& input) {
  const Oracle oracle = oracle_of(options);
  return explain(estimate(oracle, input), oracle, "ordinary regression", "all pairs are known");
}

Estimate by_prior(const Auto& options, const Facts&, const Input& input) {
  const Entropic entropic = entropic_of(options);
  return explain(estimate(entropic, input), entropic, "likelihood over all links, weighted by their prior odds",
                 "prior weights of pairs are odds where links have a likelihood");
}

/// All links where the order leaves the answer open. Where it tells something, they have to tell it certainly and agree
/// with it; an order that is chance contradicts nothing.
Estimate order_or_all_links(const Auto& options, const Facts& facts, const Input& input, const Estimate& in_order) {
  Estimate all_links = by_all_links(options, facts, input, in_order.identifiable.reason + "; ");
  const Verdict verdict = all_links.identifiable.verdict;
  if (in_order.order_is_chance) return verdict == Verdict::not_identifiable && facts.hinted ? in_order : all_links;
  const bool told = verdict == Verdict::identified && !contradicted(facts, input, in_order, all_links);
  return told ? all_links : in_order;
}

/// The groups bound every link, the order tells of a part of them: either may know more. So may all links together
/// where few are right.
Estimate more_certain_of(const Auto& options, const Facts& facts, const Input& input, Estimate in_order) {
  const bool grouped = facts.groups > 1;
  const bool by_regression = std::holds_alternative<Adjusted>(*in_order.chosen);
  if (!facts.scalar || !(grouped || (by_regression && !in_order.contradicted))) return in_order;
  Estimate all_links = by_all_links(
      options, facts, input,
      fmt::format("{} tell more than the order, by the standard errors; ", grouped ? "the groups" : "all links"));
  const bool better = vagueness(all_links) < vagueness(in_order) && !contradicted(facts, input, in_order, all_links);
  return better ? all_links : in_order;
}

/// Of another law than the Gaussian, or where something is known of every link: what the rules below compare are
/// Gaussian regressions with one rate of wrong links.
Estimate by_order_of_its_own(const Auto& options, const Facts& facts, const Input& input) {
  const Mixture mixture = mixture_of(options);
  Estimate in_order = estimate(mixture, input);
  const std::string found = in_order.identifiable.reason;
  const bool by_links = options.family.kind != FamilyKind::cox && !input.problem.facts.describes_links();
  if (in_order.order_is_chance && !facts.hinted && by_links) return by_all_links(options, facts, input, found + "; ");
  return explain(std::move(in_order), mixture, "rows in order, each link right or wrong", found);
}

Estimate by_order_first(const Auto& options, const Facts& facts, const Input& input) {
  if (!options.family.is_gaussian() || input.problem.facts.describes_links())
    return by_order_of_its_own(options, facts, input);
  const Estimate by_mixture = estimate(mixture_of(options), input);
  Estimate in_order = of_least_risk(input, by_mixture, by_order(options, input, by_mixture));
  return in_order.identifiable.verdict == Verdict::not_identifiable
             ? order_or_all_links(options, facts, input, in_order)
             : more_certain_of(options, facts, input, std::move(in_order));
}

Estimate map_points(const Auto& options, const Facts&, const Input& input) { return by_points(options, input, ""); }

Estimate without_order(const Auto& options, const Facts& facts, const Input& input) {
  return by_all_links(options, facts, input, "");
}

struct Route {
  AutoRule rule;
  bool (*applies)(const Facts&);
  Estimate (*take)(const Auto&, const Facts&, const Input&);
};

/// The first that applies is taken.
constexpr std::array routes{
    Route{{"all pairs of one table are known", "oracle", "ordinary regression on them"},
          [](const Facts& facts) { return facts.all_pairs_known; },
          by_known_pairs},
    Route{{"pairs have prior weights, or a soft key", "entropic", "all links, weighted by their prior odds"},
          [](const Facts& facts) { return facts.prior; },
          by_prior},
    Route{{"the model is rigid, similarity or affine, and nothing is known of the links", "registration",
           "the most likely map from any rotation, some rows of either table without a partner"},
          [](const Facts& facts) { return facts.points && !facts.hinted; },
          map_points},
    Route{
        {"rows may be linked in order: by the hint, or because both tables have equally many rows, there are no groups "
         "and the hint does not rule it out",
         "mixture, adjusted or entropic",
         "a mixture of right and wrong links; adjusted regression if regression on all rows or the features contradict "
         "it; both weighted by their expected errors if the answer is not identified; all links if the order leaves it "
         "open or groups are more informative"},
        [](const Facts& facts) { return facts.order_may_tell; },
        by_order_first},
    Route{{"otherwise", "entropic", "all links, within groups and with known pairs if given"},
          [](const Facts&) { return true; },
          without_order},
};

}  // namespace

std::vector<AutoRule> auto_rules() {
  std::vector<AutoRule> rules;
  for (const Route& route : routes) rules.push_back(route.rule);
  return rules;
}

Estimate estimate(const Auto& options, const Input& input) {
  const Facts facts = look(options, input);
  const auto route = std::find_if(routes.begin(), routes.end(), [&](const Route& one) { return one.applies(facts); });
  return route->take(options, facts, input);
}

}  // namespace unshuffle
