// Ordinary regression: on rows in the order given, and on pairs that are known.
#include "estimators/unlinked.hpp"
#include "unshuffle/core/error.hpp"

namespace unshuffle {

Estimate estimate_ls(const MethodInput& input) {
  require_rows_in_order(input, "ls");
  const UnlinkedRows rows(input.problem, input.bound);
  Estimate estimate = regression_on(input, rows, links_in_order(input.problem), "rows in order");
  estimate.std_error_note = "ordinary ones, right only if the rows are linked in the order given";
  return estimate;
}

Estimate estimate_oracle(const MethodInput& input) {
  if (input.problem.known.empty()) {
    throw InvalidInput("oracle needs known pairs: --known PAIRS.csv, or --truth truth.json of a simulation");
  }
  Links links;
  for (const KnownPair& pair : input.problem.known) {
    links.responses.push_back(pair.response_row);
    links.features.push_back(pair.feature_row);
  }
  return regression_on(input, UnlinkedRows(input.problem, input.bound), links, "known pairs");
}

}  // namespace unshuffle
