// Ordinary regression: on rows in the order given, and on pairs that are known.
#include <fmt/format.h>

#include "estimators/family_regression.hpp"
#include "estimators/unlinked.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/core/wording.hpp"

namespace unshuffle {

namespace {

Estimate regression(const Input& input, const Links& links, const FamilyChoice& family, const std::string& start) {
  if (!family.is_gaussian()) return family_regression_on(input, family_of(family.kind), links, start);
  return regression_on(input, UnlinkedRows(input.problem, input.bound), links, start);
}

}  // namespace

Estimate estimate(const Ls& ls, const Input& input) {
  require_rows_in_order(input, "ls");
  Estimate result = regression(input, links_in_order(input.problem), ls.family, "rows in order");
  result.std_error_note = "ordinary ones, right only if the rows are linked in the order given";
  return result;
}

Estimate estimate(const Oracle& oracle, const Input& input) {
  if (input.problem.known.empty()) {
    throw InvalidInput(fmt::format("oracle needs known pairs ({}), or the links of a simulation ({})", option("known"),
                                   option("truth")));
  }
  Links links;
  for (const KnownPair& pair : input.problem.known) {
    links.responses.push_back(pair.response_row);
    links.features.push_back(pair.feature_row);
  }
  return regression(input, links, oracle.family, "known pairs");
}

}  // namespace unshuffle
