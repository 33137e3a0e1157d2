// Linearly dependent columns.
#pragma once

#include <string>
#include <vector>

#include "unshuffle/model/model.hpp"
#include "unshuffle/tables/problem.hpp"

namespace unshuffle {

/// Names of the parameters whose columns are linearly dependent, so that only combinations of their effects are
/// determined, whatever the links are. Empty if there are none, and for models not linear in their parameters.
[[nodiscard]] std::vector<std::string> collinear_parameters(const Problem& problem, const Model& bound);

}  // namespace unshuffle
