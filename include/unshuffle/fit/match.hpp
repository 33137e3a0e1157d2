// One-to-one pairs out of a soft correspondence, with a probability for each and the rows left without a partner.
#pragma once

#include <vector>

#include "unshuffle/gradient/evaluator.hpp"

namespace unshuffle {

struct Match {
  Index response_row;
  Index feature_row;
  double probability;  ///< Share of the rows' mass that the plan puts on this link, in [0, 1].
};

struct Matching {
  std::vector<Match> pairs;                ///< By ascending response row.
  std::vector<Index> unmatched_responses;  ///< Ascending.
  std::vector<Index> unmatched_features;
};

/// Optimal assignment at w restricted to the plan's support; ties are broken by row index.
[[nodiscard]] Matching match(Evaluator& evaluator, const VectorRef& w);

}  // namespace unshuffle
