// Requests that cannot finish or would be meaningless are rejected before the work begins.
#pragma once

#include <string>

#include "unshuffle/core/export.hpp"
#include "unshuffle/model/model.hpp"
#include "unshuffle/objective/evaluator.hpp"
#include "unshuffle/tables/problem.hpp"

namespace unshuffle UNSHUFFLE_EXPORT {

/// Throws BadData for data this model cannot be fitted to: too few rows, constant columns, numbers that cannot be
/// squared.
void require_estimable(const Problem& problem, const Model& bound);

/// Throws BadData when predictions with these parameters are too far from the responses for the difference to be
/// squared.
void require_finite_costs(const Evaluator& evaluator, const VectorRef& w);

/// Memory of all plans of a problem on the dense backend, with cost and workspace.
[[nodiscard]] double dense_bytes(const Problem& problem);
[[nodiscard]] double free_memory_bytes();

/// Throws SystemFailure stating the requirement if that much is not free.
void require_memory(double bytes, const std::string& what, const std::string& advice = "");

}  // namespace unshuffle
