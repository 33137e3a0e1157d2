// What a user asks for is refused before the work begins when it cannot come to an end or mean anything.
#pragma once

#include <string>

#include "unshuffle/model/model.hpp"
#include "unshuffle/objective/evaluator.hpp"
#include "unshuffle/tables/problem.hpp"

namespace unshuffle {

/// Throws BadData for what a fit of this model could not make sense of: too few rows, columns that never vary, numbers
/// that cannot be squared.
void require_estimable(const Problem& problem, const Model& bound);

/// Throws BadData when predictions with these parameters are too far from the responses for the difference to be
/// squared.
void require_finite_costs(const Evaluator& evaluator, const VectorRef& w);

/// Of all plans of a problem on the dense backend together, with cost and workspace.
[[nodiscard]] double dense_bytes(const Problem& problem);
[[nodiscard]] double free_memory_bytes();

/// Throws SystemFailure saying what is needed when so much is not free.
void require_memory(double bytes, const std::string& what, const std::string& advice = "");

}  // namespace unshuffle
