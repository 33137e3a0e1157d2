// The backend that solves a problem.
#pragma once

#include <fmt/format.h>

#include <algorithm>

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

/// Whether clouds of points take less time than a cost matrix. In up to three dimensions they do from some 3000 rows a
/// side; in more, boxes leave little out, and they serve where the matrix would take gigabytes.
[[nodiscard]] inline bool clouds_pay(const Problem& problem) {
  constexpr double pairs_in_space = 9e6, pairs_that_fill_memory = 4e8;
  const double least = problem.outputs() <= 3 ? pairs_in_space : pairs_that_fill_memory;
  if (static_cast<double>(problem.responses()) * static_cast<double>(problem.features()) <= least) return false;
  const std::vector<Block> blocks = blocks_of(problem);
  return std::any_of(blocks.begin(), blocks.end(), [&](const Block& block) {
    return static_cast<double>(block.response_rows.size()) * static_cast<double>(block.feature_rows.size()) > least;
  });
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
  return in_space && clouds_pay(problem) ? Backend::clouds : Backend::dense;
}

}  // namespace unshuffle
