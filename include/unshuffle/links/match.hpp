// One-to-one pairs out of a soft correspondence, with a probability for each and the rows left without a partner.
#pragma once

#include <vector>

#include "unshuffle/fitted/fit.hpp"
#include "unshuffle/objective/evaluator.hpp"

namespace unshuffle {

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

/// Which rows of a robust fit take part.
enum class LinkRows {
  kept,  ///< Those that keep at least half of their mass.
  all    ///< Every row: as many pairs as the smaller side has rows, where the costs allow.
};

/// Optimal assignment at w, group by group. On the dense backend pairs without plan mass are forbidden; on the sorted
/// one pairs do not cross (assignment.hpp). Ties are broken by row index. `problem` and `model` are those of the
/// evaluator.
[[nodiscard]] Matching match(Evaluator& evaluator, const Problem& problem, const Model& model, const VectorRef& w,
                             LinkRows rows = LinkRows::kept);

/// The same for a fit just made, at its parameters and its ε. Where it knows how probable links in the order given are,
/// those that are more probable than not come first. `options` are those it was made with, `bound` the model
/// bound to `problem`.
[[nodiscard]] Matching match(const Fit& fit, const Problem& problem, const Model& bound, FitOptions options);

}  // namespace unshuffle
