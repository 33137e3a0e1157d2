// Columns that depend on each other linearly.
#pragma once

#include <string>
#include <vector>

#include "unshuffle/model/model.hpp"
#include "unshuffle/tables/problem.hpp"

namespace unshuffle {

/// Names of the parameters of columns that are linear combinations of each other, so that only sums of their effects
/// are determined, whatever the links are. Empty where there are none, and for models not linear in their parameters.
[[nodiscard]] std::vector<std::string> collinear_parameters(const Problem& problem, const Model& bound);

}  // namespace unshuffle
