// Looks at what is there (pairs, row order, groups, outputs) and chooses.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "estimators/unlinked.hpp"
#include "links/linked.hpp"
#include "objective/backend.hpp"
#include "verdict/identifiability.hpp"

namespace unshuffle {

namespace {

bool scalar(const MethodInput& input) {
  return backend_for(input.problem, input.bound, input.options.backend) == Backend::sorted;
}

Estimate said(Estimate estimate, Method chosen, const std::string& choice, const std::string& why) {
  estimate.chosen = chosen;
  estimate.choice = fmt::format("{}: {}\n{}", name_of(chosen), choice, why);
  return estimate;
}

/// Rows beside each other are worth a look: the order is a hint, or nobody said it is none and the tables are as long.
/// Groups that go with the response make rows beside each other agree whatever their order, so there it must be said.
bool order_may_tell(const MethodInput& input) {
  const Problem& problem = input.problem;
  if (input.options.row_order_unrelated) return false;
  const bool as_long = problem.responses() == problem.features();
  if (!input.options.row_hint && (!as_long || !problem.response_groups.empty())) return false;
  return links_in_order(problem).size() * problem.outputs() > 2 * input.bound.parameters();
}

Estimate without_order(const MethodInput& input, const std::string& before) {
  const std::size_t blocks = blocks_of(input.problem).size();
  const std::string groups = blocks > 1 ? fmt::format(" within {} groups and known pairs", blocks) : "";
  const char* noise = input.options.known_noise_sd > 0 ? ", noise given" : ", noise estimated";
  const char* why = scalar(input) ? "one response and an additive model make all links together affordable"
                    : input.options.backend == Backend::dense
                        ? "the dense backend was asked for: all pairs are looked at"
                        : "several responses, or a model that is not additive: all pairs are looked at";
  return said(estimate_entropic(input), Method::entropic, "likelihood over all links" + groups + noise, before + why);
}

/// Sum of the logarithms of the standard errors: of two estimates of the same coefficients, the one with less knows
/// more.
double vagueness(const Estimate& estimate) {
  if (estimate.covariance.size() == 0 || estimate.identifiable.verdict == Verdict::not_identifiable)
    return std::numeric_limits<double>::infinity();
  return 0.5 * estimate.covariance.diagonal().array().log().sum();
}

// The mixture is the most exact where its likelihood holds. Where regression on all rows says that it does not, or that
// the order tells more than the likelihood can see, that regression is the answer, adjusted for wrong links.
Estimate by_order(const MethodInput& input) {
  Estimate mixture = estimate_mixture(input);
  const std::string found = mixture.identifiable.reason;
  const bool unsure = mixture.contradicted || mixture.identifiable.verdict == Verdict::not_identifiable;
  if (unsure && input.bound.linear_in_parameters()) {
    Estimate adjusted = estimate_adjusted(input);
    adjusted.contradicted = mixture.contradicted;
    return said(std::move(adjusted), Method::adjusted, "regression on rows in order, adjusted for wrong links",
                "a mixture will not do: " + found);
  }
  return said(std::move(mixture), Method::mixture, "rows in order, right or wrong link by link", found);
}

/// Without groups the likelihood over all links rests on the same law of the noise as the mixture.
bool contradicted(const MethodInput& input, const Estimate& in_order, const Estimate& all_links) {
  if (in_order.contradicted && blocks_of(input.problem).size() == 1) return true;
  const CandidateLinks links = candidates_of(input.problem, input.bound, links_in_order(input.problem));
  return contradicts(agreement_with_regression(input.bound, links, all_links.candidates.front().parameters));
}

}  // namespace

Estimate estimate_auto(const MethodInput& input) {
  const Problem& problem = input.problem;
  const auto known = static_cast<Index>(problem.known.size());
  if (known > 0 && known == std::min(problem.responses(), problem.features())) {
    return said(estimate_oracle(input), Method::oracle, "ordinary regression", "all pairs are known");
  }
  if (problem.has_prior()) {
    return said(estimate_entropic(input), Method::entropic, "likelihood over all links, weighted by their prior odds",
                "prior weights of pairs are odds where links have a likelihood");
  }
  if (!order_may_tell(input)) return without_order(input, "");
  Estimate in_order = by_order(input);
  if (in_order.identifiable.verdict == Verdict::not_identifiable) {
    Estimate all_links = without_order(input, in_order.identifiable.reason + "; ");
    const bool told =
        all_links.identifiable.verdict != Verdict::not_identifiable && !contradicted(input, in_order, all_links);
    return told || !input.options.row_hint ? std::move(all_links) : std::move(in_order);
  }
  // The groups bound every link, the order tells of a part of them: either may know more. So may all links together
  // where few are right.
  const bool grouped = blocks_of(problem).size() > 1;
  if (scalar(input) && (grouped || (in_order.chosen == Method::adjusted && !in_order.contradicted))) {
    Estimate all_links = without_order(input, fmt::format("{} tell more than the order, by the standard errors; ",
                                                          grouped ? "the groups" : "all links"));
    if (vagueness(all_links) < vagueness(in_order) && !contradicted(input, in_order, all_links)) return all_links;
  }
  return in_order;
}

}  // namespace unshuffle
