// One-to-one pairs of largest total weight in a sparse graph; cheap in most frames.
#pragma once

#include <vector>

#include "unshuffle/core/types.hpp"

namespace unshuffle::tracking {

struct Edge {
  Index row;
  Index column;
  double weight;  ///< > 0; pairs without an edge may not be made.
};

/// Indices into `edges` of the chosen pairs, ascending. Connected parts are solved on their own by optimal assignment.
[[nodiscard]] std::vector<std::size_t> heaviest_pairs(const std::vector<Edge>& edges, Index rows, Index columns);

}  // namespace unshuffle::tracking
