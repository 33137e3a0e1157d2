// Looks at what is there (pairs, row order, groups, outputs) and chooses.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "fit/linked.hpp"
#include "gradient/backend.hpp"
#include "methods/method.hpp"

namespace unshuffle {

namespace {

bool scalar(const MethodInput& input) {
  return backend_for(input.problem, input.bound, input.options.backend) == Backend::sorted;
}

Estimate said(Estimate estimate, const std::string& choice, const std::string& why) {
  estimate.choice = fmt::format("{}\n{}", choice, why);
  return estimate;
}

/// Rows beside each other are worth a look: the order is a hint, or nobody said it is none and the tables are as long.
/// Groups that go with the response make rows beside each other agree whatever their order, so there it must be said.
bool order_may_tell(const MethodInput& input) {
  const Problem& problem = input.problem;
  if (input.options.row_order_unrelated || problem.responses() != problem.features()) return false;
  if (!problem.response_groups.empty() && !input.options.row_hint) return false;
  return links_in_order(problem).size() * problem.outputs() > 2 * input.bound.parameters();
}

Estimate without_order(const MethodInput& input, const std::string& before) {
  const std::size_t blocks = blocks_of(input.problem).size();
  const std::string groups = blocks > 1 ? fmt::format(" within {} groups and known pairs", blocks) : "";
  const char* why = scalar(input) ? "one response and an additive model make all links together affordable"
                                  : "several responses, or a model that is not additive: all pairs are looked at";
  return said(estimate_entropic(input), "entropic: likelihood over all links" + groups + ", noise estimated",
              before + why);
}

/// Sum of the logarithms of the standard errors: of two estimates of the same coefficients, the one with less knows
/// more.
double vagueness(const Estimate& estimate) {
  if (estimate.covariance.size() == 0 || estimate.identifiable.verdict == Verdict::not_identifiable)
    return std::numeric_limits<double>::infinity();
  return 0.5 * estimate.covariance.diagonal().array().log().sum();
}

}  // namespace

Estimate estimate_auto(const MethodInput& input) {
  const Problem& problem = input.problem;
  const auto known = static_cast<Index>(problem.known.size());
  if (known > 0 && known == std::min(problem.responses(), problem.features())) {
    return said(estimate_oracle(input), "oracle: ordinary regression", "all pairs are known");
  }
  if (problem.has_prior()) {
    return said(estimate_entropic(input), "entropic: likelihood over all links, weighted by their prior odds",
                "prior weights of pairs are odds where links have a likelihood");
  }
  if (!order_may_tell(input)) return without_order(input, "");
  Estimate in_order = estimate_mixture(input);
  const std::string found = in_order.identifiable.reason;
  if (in_order.identifiable.verdict == Verdict::not_identifiable) return without_order(input, found + "; ");
  // The groups bound every link, the order tells of a part of them: either may know more.
  if (blocks_of(problem).size() > 1 && scalar(input)) {
    Estimate within_groups = without_order(input, "the groups tell more than the order, by the standard errors; ");
    if (vagueness(within_groups) < vagueness(in_order)) return within_groups;
  }
  return said(std::move(in_order), "mixture: rows in order, right or wrong link by link", found);
}

}  // namespace unshuffle
