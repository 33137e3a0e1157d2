// Between regression on rows in order, adjusted for wrong links or not, and the mixture: the least expected error.
#pragma once

#include "estimators/estimate.hpp"
#include "likelihood/candidate_links.hpp"

namespace unshuffle {

struct LeastRisk {
  Vector parameters;
  double share = 0;    ///< Of wrong links that regression on all rows is adjusted for,
  double mixture = 0;  ///< and the weight of the mixture beside that.
};

/// `by_mixture` counts if it has a covariance and does not rest on ties. For models linear in their coefficients.
[[nodiscard]] LeastRisk least_risk(const Input& input, const Estimate& by_mixture);

}  // namespace unshuffle
