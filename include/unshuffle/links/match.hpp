// One-to-one pairs from a soft correspondence, with a probability for each and the rows without a partner.
#pragma once

#include <vector>

#include "unshuffle/core/export.hpp"
#include "unshuffle/objective/evaluator.hpp"

namespace unshuffle UNSHUFFLE_EXPORT {

struct Match {
  Index response_row;
  Index feature_row;
  double probability;  ///< Of this link at the ε used, in [0, 1]: from sampled matchings, or from the plan; see docs.
};

struct Matching {
  std::vector<Match> pairs;                ///< By ascending response row.
  std::vector<Index> unmatched_responses;  ///< Ascending.
  std::vector<Index> unmatched_features;
};

/// Which rows of a robust fit are matched.
enum class LinkRows {
  kept,  ///< Those that keep at least half of their mass.
  all    ///< Every row: as many pairs as the smaller side has rows, where the costs allow.
};

/// Optimal assignment at w, group by group. On the dense backend pairs without plan mass are forbidden; on the sorted
/// one pairs do not cross (assignment.hpp). Ties are broken by row index. `problem` and `model` are those of the
/// evaluator.
[[nodiscard]] Matching match(Evaluator& evaluator, const Problem& problem, const Model& model, const VectorRef& w,
                             LinkRows rows = LinkRows::kept);

/// The same given probabilities of the links in order (NaN: a row has none): those more likely right than wrong are
/// kept, the other rows are matched among themselves. `bound` is bound to `problem`, which is completed(); `plan` has ε
/// in the unit of the cost.
[[nodiscard]] Matching match_beside_order(const Problem& problem, const Model& bound, const VectorRef& w,
                                          const EvaluatorOptions& plan, const Vector& link_probabilities);

}  // namespace unshuffle
