// Checks of an answer by groups, in addition to the likelihood: how it changes without some of them, and whether their
// means agree with it.
#pragma once

#include "likelihood/likelihood.hpp"

namespace unshuffle {

struct Calibrated;

struct GroupChecks {
  Matrix jackknife;        ///< Covariance of the parameters by leaving out groups; empty if there are too few.
  double means_agree = 1;  ///< Probability that group means are as far from the predicted ones by chance.
};

/// Refits from the answer, without a new search. For problems on the sorted backend.
[[nodiscard]] GroupChecks check_groups(const Problem& problem, const Model& bound, const LikelihoodOptions& options,
                                       const Calibrated& answer);

}  // namespace unshuffle
