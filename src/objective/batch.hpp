// Mini-batches: the objective of a few rows drawn from each side.
#pragma once

#include "core/random.hpp"
#include "unshuffle/objective/evaluator.hpp"

namespace unshuffle {

/// The problem of these rows, in this order, with the evidence about them.
[[nodiscard]] Problem some_rows(const Problem& problem, const std::vector<Index>& responses,
                                const std::vector<Index>& features);

/// About `rows` rows of each side, in proportion from every group, as a problem of its own.
[[nodiscard]] Problem draw_batch(const Problem& problem, Index rows, RandomStream& random);

/// Objective and gradient of a fresh batch at w, as sums over the batch's rows (which the paper's learning rates
/// assume).
[[nodiscard]] Evaluation evaluate_batch(const Problem& problem, const Model& bound, const EvaluatorOptions& options,
                                        const VectorRef& w, Index rows, RandomStream& random);

}  // namespace unshuffle
