// Cubic B-splines over one interval, both ends of which are knots four times over.
#pragma once

#include <vector>

#include "unshuffle/core/types.hpp"

namespace unshuffle {

/// The smallest value, so many quantiles in between, the largest value; ties make fewer. `values` must not all be
/// equal.
[[nodiscard]] std::vector<double> spline_breakpoints(const VectorRef& values, int between);

/// Every B-spline at every value, values × (breakpoints + 2). Beyond the breakpoints they continue as straight lines.
[[nodiscard]] Matrix cubic_splines(const std::vector<double>& breakpoints, const VectorRef& values);

}  // namespace unshuffle
