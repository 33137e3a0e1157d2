// A fit as one self-contained page: verdict, pictures, numbers. Opens from disk without a network.
#pragma once

#include <string>
#include <vector>

#include "unshuffle/core/export.hpp"
#include "unshuffle/links/match.hpp"
#include "unshuffle/report/json.hpp"

namespace unshuffle UNSHUFFLE_EXPORT {

/// What a page is made of. `bound` is the model bound to the problem, `plan` makes the plan at the answer.
struct ReportInput {
  const Result& result;
  const FitContext& context;
  const Problem& problem;
  const Model& bound;
  const EvaluatorOptions& plan;
  const Matching& matching;
  std::vector<KnownPair> truth{};  ///< The true links if known: match probabilities are compared with them.
};

[[nodiscard]] std::string html_report(const ReportInput& input);

}  // namespace unshuffle
