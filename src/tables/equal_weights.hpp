// Whether the weights of a table's rows say anything.
#pragma once

#include "unshuffle/core/types.hpp"

namespace unshuffle {

/// No weights at all, or all the same. Weights that were divided by their sum, here or by whoever wrote them down with
/// ten digits, differ by no more than a part in 10⁹; taking those for equal moves no answer by more than that, and
/// lets every method that needs equal weights agree on whether they are.
[[nodiscard]] inline bool equal_weights(const VectorRef& weights) {
  constexpr double rounding = 1e-9;
  return weights.size() == 0 || weights.maxCoeff() <= (1 + rounding) * weights.minCoeff();
}

}  // namespace unshuffle
