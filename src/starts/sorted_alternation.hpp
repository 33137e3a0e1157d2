// Alternating minimisation of one response with an additive model: match by sorting, refit, again.
#pragma once

#include "links/linked.hpp"

namespace unshuffle {

/// A fixed point of hard matching, or the result of a few dozen cheap steps from `w`.
struct SortedAlternation {
  Vector parameters;
  Links links;
  double squares = 0;  ///< Of the residuals of the links.
};

/// Groups and known pairs are ignored.
[[nodiscard]] SortedAlternation sorted_alternation(const Problem& problem, const Model& bound, const Vector& w);

}  // namespace unshuffle
