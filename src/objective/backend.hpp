// The backend that solves a problem.
#pragma once

#include "unshuffle/core/error.hpp"
#include "unshuffle/objective/evaluator.hpp"

namespace unshuffle {

/// Dense or sorted. Throws InvalidInput when sorted is requested but not applicable.
[[nodiscard]] inline Backend backend_for(const Problem& problem, const Model& model, Backend wanted) {
  const bool on_a_line = problem.outputs() == 1 && model.additive() != nullptr;
  if (wanted == Backend::sorted && !on_a_line)
    throw InvalidInput("the sorted backend needs one response column and an additive model");
  if (wanted == Backend::sorted && problem.has_prior())
    throw InvalidInput(
        "the sorted backend works on positions, not pairs; prior weights and soft groups need the dense one");
  return on_a_line && !problem.has_prior() && wanted != Backend::dense ? Backend::sorted : Backend::dense;
}

}  // namespace unshuffle
