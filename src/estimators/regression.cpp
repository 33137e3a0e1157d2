// Ordinary regression: on rows in the order given, and on pairs that are known.
#include <fmt/format.h>

#include "estimators/unlinked.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/core/wording.hpp"

namespace unshuffle {

Estimate estimate(const Ls&, const Input& input) {
  require_rows_in_order(input, "ls");
  const UnlinkedRows rows(input.problem, input.bound);
  Estimate result = regression_on(input, rows, links_in_order(input.problem), "rows in order");
  result.std_error_note = "ordinary ones, right only if the rows are linked in the order given";
  return result;
}

Estimate estimate(const Oracle&, const Input& input) {
  if (input.problem.known.empty()) {
    throw InvalidInput(fmt::format("oracle needs known pairs ({}), or the links of a simulation ({})", option("known"),
                                   option("truth")));
  }
  Links links;
  for (const KnownPair& pair : input.problem.known) {
    links.responses.push_back(pair.response_row);
    links.features.push_back(pair.feature_row);
  }
  return regression_on(input, UnlinkedRows(input.problem, input.bound), links, "known pairs");
}

}  // namespace unshuffle
