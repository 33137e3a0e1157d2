// Whether the row weights of a table differ.
#pragma once

#include "unshuffle/core/types.hpp"

namespace unshuffle {

/// No weights, or all the same. Weights divided by their sum, here or by a program that wrote ten digits, differ by at
/// most one part in 10⁹; treating those as equal changes no answer by more than that, and all methods that need equal
/// weights agree on whether they are.
[[nodiscard]] inline bool equal_weights(const VectorRef& weights) {
  constexpr double rounding = 1e-9;
  return weights.size() == 0 || weights.maxCoeff() <= (1 + rounding) * weights.minCoeff();
}

}  // namespace unshuffle
