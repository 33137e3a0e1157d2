// Between regression on rows in order, adjusted for wrong links or not, and the mixture: the least expected error.
#pragma once

#include "estimators/estimate.hpp"
#include "likelihood/candidate_links.hpp"

namespace unshuffle {

struct LeastRisk {
  Vector parameters;
  double adjusted = 0;  ///< How far from regression on all rows (0) to the same adjusted for wrong links (1),
  double mixture = 0;   ///< and the weight of the mixture beside that.
};

/// `by_mixture` counts if it has a covariance, is more than chance and does not rest on ties. For models linear in
/// their coefficients.
[[nodiscard]] LeastRisk least_risk(const Input& input, const Estimate& by_mixture);

}  // namespace unshuffle
