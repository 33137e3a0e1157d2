// The backend that solves a problem.
#pragma once

#include <fmt/format.h>

#include "transport/cloud_transport.hpp"
#include "unshuffle/core/error.hpp"
#include "unshuffle/objective/evaluator.hpp"

namespace unshuffle {

/// Pairs of rows that may match.
[[nodiscard]] inline double possible_pairs(const Problem& problem) {
  double pairs = 0;
  for (const Block& block : blocks_of(problem))
    pairs += static_cast<double>(block.response_rows.size()) * static_cast<double>(block.feature_rows.size());
  return pairs;
}

/// Dense, sorted or clouds. Throws InvalidInput when what is requested is not applicable.
[[nodiscard]] inline Backend backend_for(const Problem& problem, const Model& model, Backend wanted) {
  const bool on_a_line = problem.outputs() == 1 && model.additive() != nullptr;
  if (wanted == Backend::sorted && !on_a_line)
    throw InvalidInput("the sorted backend needs one response column and an additive model");
  if (wanted == Backend::sorted && problem.has_prior())
    throw InvalidInput(
        "the sorted backend works on positions, not pairs; prior weights and soft groups need the dense one");
  const bool in_space = model.additive() != nullptr && problem.outputs() <= transport::CloudTransport::most_outputs;
  if (wanted == Backend::clouds && (!in_space || problem.has_prior()))
    throw InvalidInput(fmt::format(
        "the clouds backend needs at most {} response columns, an additive model, and neither prior weights "
        "nor soft groups",
        transport::CloudTransport::most_outputs));
  if (wanted == Backend::dense || problem.has_prior()) return Backend::dense;
  if (wanted == Backend::clouds) return wanted;
  if (on_a_line) return Backend::sorted;
  return Backend::dense;  // clouds, where asked for: they save memory, not time
}

}  // namespace unshuffle
