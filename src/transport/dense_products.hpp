// Products of a dense matrix and a vector by several threads. Blocks are fixed and every sum is taken within one of
// them, so results do not depend on the number of threads.
#pragma once

#include "unshuffle/core/types.hpp"

namespace unshuffle::transport {

/// K x.
[[nodiscard]] Vector dense_times(const Matrix& k, const Vector& x);
/// Kᵀ x.
[[nodiscard]] Vector dense_transposed_times(const Matrix& k, const Vector& x);

}  // namespace unshuffle::transport
